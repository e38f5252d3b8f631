"""One namespace of the KubeRay operator: defaults of the charts and of the fleet file, and the commands of pages."""

import re
from pathlib import Path

from rayhelm.deploy.advice import how_to_get_kuberay
from rayhelm.deploy.values.platform.scraping import PlatformScraping
from rayhelm.deploy.values.ray_service.network import RayNetworkPolicy
from rayhelm.deploy.values.tenant.network import AllowedPeers
from rayhelm.facts.versions import get_kuberay_namespace
from rayhelm.fleet.pools import Cluster

ROOT = Path(__file__).parents[2]
INSTALL = re.compile(r"helm (?:install|upgrade).* kuberay-operator \S+.*")
PAGES = [
    ROOT / "README.md",
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "charts").rglob("*.md"),
    *(ROOT / "examples").rglob("*.md"),
]


def test_defaults_name_the_namespace_of_the_operator() -> None:
    name = get_kuberay_namespace()
    assert Cluster().kuberay_operator.namespace == name
    assert RayNetworkPolicy().operator.namespace == name
    assert PlatformScraping().kuberay_namespace == name
    assert [each for each in AllowedPeers().namespaces if each.endswith(":8265")] == [f"{name}:8265"]


def test_manifest_of_the_test_node_uses_the_namespace_of_the_operator() -> None:
    text = (ROOT / "testbed/node/manifests/kuberay-operator.yaml").read_text()
    assert f"namespace: {get_kuberay_namespace()}" in text


def test_commands_install_kuberay_in_its_namespace() -> None:
    commands = [(path, line) for path in PAGES for line in INSTALL.findall(path.read_text())]
    assert {path.relative_to(ROOT).as_posix() for path, _ in commands} >= {
        "README.md",
        "charts/quickstart/README.md",
        "charts/ray-service/README.md",
        "docs/get-started/on-a-cluster.md",
        "examples/flux/README.md",
    }
    for path, line in commands:
        assert re.search(rf"(-n|--namespace) {get_kuberay_namespace()}\b", line), path
    assert INSTALL.search(how_to_get_kuberay("1.7.0"))


def test_every_page_that_requires_kuberay_has_the_command() -> None:
    for path in PAGES:
        if re.search(r"KubeRay 1\.7\.0 or 1\.6\.2|KubeRay operator \(1\.7\.0", path.read_text()):
            assert INSTALL.search(path.read_text()), path
