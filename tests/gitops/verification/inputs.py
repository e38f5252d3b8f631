"""What the result of the verification depends on."""

import hashlib
from pathlib import Path

__all__ = ["RESULT", "compute_hash"]

ROOT = Path(__file__).parents[3]
RESULT = Path(__file__).parent / "result.json"
INPUTS = (
    "charts/argocd/templates/**/*",
    "charts/argocd/files/argocd-cm.yaml",
    "charts/argocd/files/kinds.json",
    "ci/tools/argo-cd/go.mod",
    "ci/tools/kuberay/go.mod",
    "tests/gitops/verification/*.py",
    "tests/gitops/verification/fleet.yaml",
    "python/src/rayhelm/render/argocd.py",
    "charts/ray-service/templates/cluster/rayservice.yaml",
    "charts/ray-service/templates/tests/*",
)


def compute_hash() -> str:
    """Return the SHA-256 of names and contents of the inputs."""
    digest = hashlib.sha256()
    paths = sorted({path for pattern in INPUTS for path in ROOT.glob(pattern) if path.is_file()})
    for path in paths:
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
