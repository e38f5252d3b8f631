"""What the result of the verification depends on."""

import hashlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from rayhelm.deploy.charts.helm import template
from rayhelm.deploy.render.files import build_files, build_manifests, render_fleet

__all__ = ["FLEET", "RESULT", "compute_digest"]

ROOT = Path(__file__).parents[3]
RESULT = ROOT / "ci/argocd/result.json"
FLEET = Path(__file__).parent / "fleet.yaml"
FILES = (
    "charts/argocd/files/argocd-cm.yaml",
    "ci/tools/argo-cd/go.*",
    "ci/tools/argocd-redis/*",
    "ci/tools/kuberay/go.*",
    "tests/gitops/verification/*.py",
    "tests/gitops/verification/fleet.yaml",
)
URL = "https://git.example.com/fleets.git"
ARGO = "argocd.argoproj.io/"


def compute_digest() -> str:
    """Return the SHA-256 of the files, of the Applications, and of what the charts tell Argo CD by annotations."""
    digest = hashlib.sha256()
    for path in sorted({path for pattern in FILES for path in ROOT.glob(pattern)}):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    digest.update(json.dumps(list(_list_rendered()), sort_keys=True).encode())
    return digest.hexdigest()


def _list_rendered() -> Iterator[object]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.yaml"
        path.write_text(FLEET.read_text().replace("URL", URL))
        rendered = render_fleet(path)
        files = build_files(rendered)
        manifests = build_manifests(rendered)
    values = yaml.safe_load(files["argocd/argocd.yaml"])
    for item in template("argocd", "acme", "argocd", values):
        if item["kind"] == "Application":
            yield item["metadata"]["name"], item["metadata"]["annotations"], item["spec"]
    for item in template("argocd", "acme", "argocd", {**values, "kind": "ApplicationSet"}):
        if item["kind"] == "ApplicationSet":
            yield item["metadata"]["annotations"], item["spec"]
    # Without names: some have a checksum of what Argo CD does not look at.
    seen = set()
    for text in manifests.values():
        for item in filter(None, yaml.safe_load_all(text)):
            annotations = item["metadata"].get("annotations", {})
            seen |= {(item["kind"], key, value) for key, value in annotations.items() if key.startswith(ARGO)}
    yield from sorted(seen)
