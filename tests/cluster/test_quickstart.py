"""Chart quickstart, installed from a real OCI registry."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from charts.kit import HELMS
from cluster.kit.cluster import Cluster
from cluster.kit.helm import Helm
from cluster.kit.wait import eventually
from rayhelm import __version__
from rayhelm.charts.helm import charts_dir
from shared.registry import package_charts, push, serve_registry


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("registry")
    with serve_registry(home) as address:
        package_charts(home / "dist")
        push(HELMS["4"], home / "dist", address)
        yield address


def test_quickstart_installs_and_uninstalls_from_a_registry(
    registry: str, cluster: Cluster, each_helm: Helm, namespace: str, tmp_path: Path
) -> None:
    values = yaml.safe_load((charts_dir() / "quickstart/examples/llama-8b.yaml").read_text())
    values["ray-service"]["networkPolicy"]["apiServer"] = {"cidrs": ["10.0.0.1/32"]}
    values["ray-service"]["kuberay"] = {"version": cluster.place.kuberay}
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    source = [f"oci://{registry}/charts/quickstart", f"--version={__version__}", "--plain-http"]
    each_helm(["install", "llm", *source, f"--namespace={namespace}", f"--values={tmp_path}/values.yaml"])
    eventually(lambda: cluster.all("RayCluster", namespace), "KubeRay made a RayCluster of the RayService")
    assert cluster.find("Deployment", "gateway", namespace)
    each_helm.uninstall("llm", namespace)
    eventually(lambda: not cluster.all("RayCluster", namespace), "the RayCluster is gone")
    assert cluster.find("Deployment", "gateway", namespace) is None
