"""`rayhelm probe` on a real node: CPUs, and two pods over the pod network, with the rights of its own account."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from pods.kit.cluster import Cluster
from pods.kit.service import given
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import load_fleet, parse_fleet
from rayhelm.live.cluster.writer import ClusterWriter, connect_writer
from rayhelm.live.probe.objects import ACCOUNT, NAMESPACE, WORKER, build_setup, format_objects
from rayhelm.live.probe.policy import POLICY
from rayhelm.live.probe.run import PoolProbe
from rayhelm.live.probe.targets import find_targets
from testbed.node.home import NODE

FLEET = """\
fleet: live
pools:
  cpu: {gpu: L4-24GB, nodes: 1, network: ethernet-1g, nodeSelector: {kubernetes.io/os: linux}}
models:
  chat: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, unpinnedReason: no pod of it starts}
"""
MINUTES = 8


@pytest.fixture(scope="module")
def kubeconfig(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The setup is applied; the file is that of the account of the probe, which has its rights only."""
    cluster.kubectl.apply(format_objects(build_setup(images=[given(cluster)])))
    try:
        config = yaml.safe_load(cluster.node.home.kubeconfig.read_text())
        token = cluster.kubectl("create", "token", ACCOUNT, f"--namespace={NAMESPACE}").strip()
        for user in config["users"]:
            user["user"] = {"token": token}
        file = tmp_path_factory.mktemp("probe") / "kubeconfig"
        file.write_text(yaml.safe_dump(config))
        yield file
    finally:
        cluster.kubectl("delete", "namespace", NAMESPACE, "--timeout=300s")
        for kind in ("clusterrole", "clusterrolebinding"):
            cluster.kubectl("delete", kind, ACCOUNT)
        for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
            cluster.kubectl("delete", kind, POLICY)


def test_probe_measures_the_node_and_stores_its_figures(cluster: Cluster, kubeconfig: Path, tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(FLEET)
    words = ["probe", "fleet.yaml", "--cpu", "--image", given(cluster), "--kubeconfig", str(kubeconfig)]
    words += ["-o", "measured.yaml", "--timeout", str(MINUTES)]
    answer = subprocess.run(
        [sys.executable, "-c", "from rayhelm.cli import main; main()", *words],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    (tmp_path / "fleet.yaml").write_text(f"measurements: measured.yaml\n{FLEET}")
    measured = load_fleet(tmp_path / "fleet.yaml").measured
    assert measured
    (node,) = measured.pools["cpu"].nodes
    assert (node.node, node.device) == (NODE, "cpu")
    assert node.memory_gb_per_s > 0
    stored = cluster.get(NAMESPACE, "configmap", "rayhelm-measurements")["data"]["measurements.yaml"]
    assert stored == (tmp_path / "measured.yaml").read_text()
    assert cluster.get(NAMESPACE, "jobs")["items"] == []


@pytest.mark.short
def test_two_pods_measure_the_network_between_them(cluster: Cluster, kubeconfig: Path) -> None:
    writer: ClusterWriter = connect_writer(kubeconfig=kubeconfig)
    loaded = parse_fleet(parse_document(FLEET, "fleet.yaml"))
    ((target, _),) = find_targets(writer, loaded.fleet, "main", (), given(cluster), NAMESPACE, on_cpu=True)
    probe = PoolProbe(writer, target, MINUTES * 60)
    # The node is alone: both pods run on it, and their messages pass its bridge and the NetworkPolicy.
    found = probe.measure_pairs([(NODE, NODE)])
    assert found, probe.skipped
    assert (found[0].nodes, found[0].backend) == ((NODE, NODE), "gloo")
    assert found[0].gb_per_s > 0


def test_pod_of_the_probe_reaches_neither_the_api_server_nor_others(cluster: Cluster, kubeconfig: Path) -> None:
    labels = {"app.kubernetes.io/name": WORKER}
    cluster.start(NAMESPACE, "worker", "pause", **labels)
    cluster.serve(NAMESPACE, "other")
    cluster.until(NAMESPACE, "worker", "kubernetes.default.svc:443", open=False)
    cluster.until(NAMESPACE, "worker", f"other.{NAMESPACE}.svc:80", open=False)


def test_account_of_the_probe_has_no_other_rights(cluster: Cluster, kubeconfig: Path) -> None:
    account = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
    for verb, what in (("get", "secrets"), ("create", "pods"), ("list", "configmaps"), ("delete", "nodes")):
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": account, "resourceAttributes": {"verb": verb, "resource": what, "namespace": NAMESPACE}},
        }
        said = cluster.kubectl("create", "--filename=-", "--output=json", text=json.dumps(review))
        assert json.loads(said)["status"]["allowed"] is False, (verb, what)
