"""Chart quickstart, installed from a real OCI registry, and by the commands of the README."""

import base64
import gzip
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cluster.kit.cluster import Cluster
from cluster.kit.helm import Helm
from cluster.kit.wait import eventually
from rayhelm import __version__
from rayhelm.deploy.charts.helm import charts_dir
from shared.page_commands import list_commands
from shared.registry import package_charts, publish, serve_registry

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("registry")
    with serve_registry(home) as address:
        package_charts(home / "dist")
        assert publish(home / "dist", address).returncode == 0
        yield address


@pytest.fixture
def api_server(cluster: Cluster) -> Iterator[tuple[str, int]]:
    """CIDR and port of the API server. The control plane of the tests listens on loopback,
    which EndpointSlices refuse, so it writes none."""
    if there := cluster.find("EndpointSlice", "kubernetes", "default"):
        yield f"{there['endpoints'][0]['addresses'][0]}/32", there["ports"][0]["port"]
        return
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


def test_readme_commands_install_a_service_whose_gateway_has_the_hash_of_the_key(
    cluster: Cluster, api_server: tuple[str, int], each_helm: Helm, tmp_path: Path
) -> None:
    """The operator is there already, and simulated pods answer nothing: tests/pods runs the last command."""
    operator, install, ask = (
        command for command in list_commands(README.read_text()) if re.match("helm|key=|kubectl", command)
    )
    assert "kuberay-operator" in operator
    assert "http://gateway/v1/chat/completions" in ask
    shutil.copytree(charts_dir(), tmp_path / "charts")
    # The version of the operator that the test has.
    version = f"--set ray-service.kuberay.version={cluster.place.kuberay}"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/helm").symlink_to(each_helm.program)
    environment = os.environ | {
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
        "KUBECONFIG": str(each_helm.kubeconfig),
        "HELM_CACHE_HOME": str(tmp_path / "cache"),
    }
    script = install.replace("--dependency-update", f"--dependency-update {version}")
    try:
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        (key,) = re.findall("^API key, shown once: (sk-[0-9a-f]{48})$", ended.stdout, re.MULTILINE)
        stored = base64.b64decode(cluster.one("Secret", "gateway-keys-apps", "llm")["data"]["keys"]).decode()
        assert stored == f"{hashlib.sha256(key.encode()).hexdigest()} first"
        records = [each for each in cluster.all("Secret", "llm") if each["type"] == "helm.sh/release.v1"]
        assert len(records) == 1
        # Helm's record is compressed, and encoded twice with Kubernetes' own encoding.
        contents = [gzip.decompress(base64.b64decode(base64.b64decode(each["data"]["release"]))) for each in records]
        assert not [each for each in contents if key.encode() in each]
        eventually(lambda: cluster.all("RayCluster", "llm"), "KubeRay made a RayCluster of the RayService")
        assert cluster.find("Deployment", "gateway", "llm")
        each_helm.uninstall("llm", "llm")
    finally:
        cluster.delete("Namespace", "llm")
        eventually(lambda: cluster.find("Namespace", "llm") is None, "the namespace is gone")
