"""The guide `docs/tasks/deliver-with-argocd.md`: its fleet file renders all that a first request needs."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from rayhelm.check.lint.fleet import check_fleet
from rayhelm.deploy.charts.helm import template
from rayhelm.deploy.render.files import Rendered, build_manifests, render_fleet
from rayhelm.deploy.values.emit import select_changed
from rayhelm.live.doctor.references import find_pod_specs, list_references

GUIDE = (Path(__file__).parents[2] / "docs/tasks/deliver-with-argocd.md").read_text()
Object = dict[str, Any]


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    texts = re.findall(r"^ *```yaml\n(.*?)^ *```$", GUIDE, re.MULTILINE | re.DOTALL)
    (text,) = [each for each in texts if "fleet: acme" in each]
    path = tmp_path_factory.mktemp("guide") / "fleet.yaml"
    path.write_text(text)
    assert check_fleet(path, ask_ray=False).problems == []
    return render_fleet(path)


@pytest.fixture(scope="module")
def objects(rendered: Rendered) -> list[Object]:
    texts = build_manifests(rendered)
    return [item for text in texts.values() for item in yaml.safe_load_all(text) if item]


def test_git_has_every_secret_that_pods_of_the_guide_read(objects: list[Object]) -> None:
    made = {
        (item["metadata"]["namespace"], item["metadata"]["name"], each["secretKey"])
        for item in objects
        if item["kind"] == "ExternalSecret"
        for each in item["spec"]["data"]
    }
    read = {
        (found.namespace, found.name, found.key)
        for item in objects
        for spec in find_pod_specs(item.get("spec"))
        for found in list_references(spec, item["metadata"].get("namespace", ""))
    }
    assert made == read
    assert len(made) == 2


def test_secret_without_the_entry_of_the_pods_is_refused_with_a_line(rendered: Rendered, tmp_path: Path) -> None:
    text = Path(rendered.plan.source.file).read_text()
    path = tmp_path / "fleet.yaml"
    path.write_text(text.replace("keys: {keys: {key: ai/gateway", "keys: {hashes: {key: ai/gateway"))
    (problem,) = check_fleet(path, ask_ray=False).problems
    assert "the pods read the entry keys of the Secret gateway-keys-apps, and it gets only: hashes" in problem.message
    assert "gateway-keys-apps" in path.read_text().splitlines()[(problem.line or 0) - 1]


def test_projects_of_the_guide_allow_every_rendered_object(rendered: Rendered, objects: list[Object]) -> None:
    assert rendered.argocd
    applications = template("argocd", "acme", "argocd", select_changed(rendered.argocd))
    allowed = {
        (each["group"], each["kind"])
        for item in applications
        if item["kind"] == "AppProject" and not item["metadata"]["name"].endswith("-operators")
        for each in (*item["spec"]["clusterResourceWhitelist"], *item["spec"]["namespaceResourceWhitelist"])
    }
    delivered = [item for item in objects if item["apiVersion"] != "argoproj.io/v1alpha1"]
    assert {(item["apiVersion"].rpartition("/")[0], item["kind"]) for item in delivered} <= allowed


def test_namespaces_of_the_guide_are_created_with_a_pod_security_level(
    rendered: Rendered, objects: list[Object]
) -> None:
    assert rendered.argocd
    level = "pod-security.kubernetes.io/enforce"
    labeled = {
        item["metadata"]["name"]
        for item in objects
        if item["kind"] == "Namespace" and level in item["metadata"]["labels"]
    }
    for item in template("argocd", "acme", "argocd", select_changed(rendered.argocd)):
        options = item["spec"].get("syncPolicy", {}) if item["kind"] == "Application" else {}
        if "CreateNamespace=true" in options.get("syncOptions", []) and "managedNamespaceMetadata" in options:
            assert level in options["managedNamespaceMetadata"]["labels"]
            labeled.add(item["spec"]["destination"]["namespace"])
    assert {release.namespace for release in rendered.releases} <= labeled


def test_guide_creates_no_object_that_git_does_not_have() -> None:
    assert "kubectl create" not in GUIDE
    for file in re.findall(r"kubectl apply -f (\S+)", GUIDE):
        assert file in ("acme/argocd/root.yaml", "stores/vault.yaml")


def test_guide_waits_for_synced_before_healthy() -> None:
    """Argo CD calls an Application Healthy before it has an object."""
    waits = re.findall(
        r"kubectl -n argocd wait (application/\S+) --for=jsonpath='\{.status.(sync|health).status\}'", GUIDE
    )
    healthy = [index for index, (_, field) in enumerate(waits) if field == "health"]
    assert healthy
    assert all((waits[index][0], "sync") in waits[:index] for index in healthy)
