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
from rayhelm.deploy.charts.helm import charts_dir
from shared.registry import package_charts, push, serve_registry


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("registry")
    with serve_registry(home) as address:
        package_charts(home / "dist")
        push(HELMS["4"], home / "dist", address)
        yield address


@pytest.fixture
def api_server(cluster: Cluster) -> Iterator[tuple[str, int]]:
    """CIDR and port of the API server. The control plane of the tests listens on loopback,
    which EndpointSlices refuse, so it writes none."""
    cluster.create(
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": "kubernetes",
                "namespace": "default",
                "labels": {"kubernetes.io/service-name": "kubernetes"},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["192.0.2.7"]}],
            "ports": [{"name": "https", "port": 16443, "protocol": "TCP"}],
        }
    )
    yield "192.0.2.7/32", 16443
    cluster.delete("EndpointSlice", "kubernetes", "default")


def allowed(cluster: Cluster, policy: str, namespace: str) -> set[tuple[str, int]]:
    """Addresses with their ports to which a policy allows connections."""
    found = cluster.one("NetworkPolicy", policy, namespace)
    return {
        (peer["ipBlock"]["cidr"], port["port"])
        for rule in found["spec"]["egress"]
        for peer in rule["to"]
        if "ipBlock" in peer
        for port in rule["ports"]
    }


def test_quickstart_installs_and_uninstalls_from_a_registry(
    registry: str,
    cluster: Cluster,
    api_server: tuple[str, int],
    each_helm: Helm,
    namespace: str,
    tmp_path: Path,
) -> None:
    values = yaml.safe_load((charts_dir() / "quickstart/examples/llama-8b.yaml").read_text())
    values["ray-service"]["autoscaler"]["enabled"] = True
    values["ray-service"]["workerGroups"]["gpu"]["maxReplicas"] = 2
    values["ray-service"]["kuberay"] = {"version": cluster.place.kuberay}
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    source = [f"oci://{registry}/charts/quickstart", f"--version={__version__}", "--plain-http"]
    each_helm(["install", "llm", *source, f"--namespace={namespace}", f"--values={tmp_path}/values.yaml"])
    eventually(lambda: cluster.all("RayCluster", namespace), "KubeRay made a RayCluster of the RayService")
    assert cluster.find("Deployment", "gateway", namespace)
    assert api_server in allowed(cluster, "llama-8b-head", namespace)
    each_helm.uninstall("llm", namespace)
    eventually(lambda: not cluster.all("RayCluster", namespace), "the RayCluster is gone")
    assert cluster.find("Deployment", "gateway", namespace) is None
