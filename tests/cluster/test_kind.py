"""What ci/kind/up changes in a cluster of kind, on a real API server that has what kind brings: no kind is needed."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.kit.bare import Bare, bare
from cluster.kit.wait import eventually
from testbed.nodes import apply, cpu_nodes

ROOT = Path(__file__).resolve().parents[2]
SIZE = {"cpu": "4", "memory": "8Gi", "pods": "110"}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "kind-control-plane", "labels": {"kubernetes.io/os": "linux"}},
    "status": {"capacity": SIZE, "allocatable": SIZE, "conditions": [{"type": "Ready", "status": "True"}]},
}
DEFAULT_CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "rancher.io/local-path",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def daemon(name: str) -> dict[str, Any]:
    """On every node, as kind's own are."""
    labels = {"app": name}
    spec = {
        "hostNetwork": True,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": name, "image": name, "resources": {"requests": {"cpu": "100m"}}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }


def claim(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }


@pytest.fixture(scope="module")
def kinds() -> Iterator[Bare]:
    """A cluster with what kind brings, and one simulated node."""
    with bare("kinds") as cluster:
        cluster.apply(daemon("kindnet"), daemon("kube-proxy"), DEFAULT_CLASS)
        apply([NODE, *cpu_nodes(1)], cluster.kubeconfig)
        yield cluster


def adapt(cluster: Bare) -> None:
    """As ci/kind/up does, and once more, for a second `up` does it again."""
    apply([NODE], cluster.kubeconfig)  # a heartbeat, since no kubelet sends one
    program = f"source ci/kind/up; kubeconfig={cluster.kubeconfig}; state={cluster.kubeconfig.parent}; adapt; adapt"
    subprocess.run(["bash", "-euo", "pipefail", "-c", program], cwd=ROOT, check=True)


def nodes_of(cluster: Bare, daemon: str) -> int:
    """On how many a daemon is to run; 0 where there is none."""
    where = ["--namespace=kube-system", "--ignore-not-found", "--output=jsonpath={.status.desiredNumberScheduled}"]
    return int(cluster.kubectl("get", "daemonset", daemon, *where) or 0)


def class_of(cluster: Bare, name: str) -> str:
    return cluster.kubectl("get", "pvc", name, "--output=jsonpath={.spec.storageClassName}")


def tried(cluster: Bare, name: str) -> str:
    """The claim as the API server would store it."""
    return cluster.kubectl(
        "create", "--dry-run=server", "--output=yaml", "--filename=-", text=yaml.safe_dump(claim(name))
    )


def test_nothing_of_kind_is_in_the_way_of_simulated_nodes(kinds: Bare) -> None:
    for name in ("kindnet", "kube-proxy"):
        eventually(lambda name=name: nodes_of(kinds, name) == 2, f"{name} on the real and on the simulated node")
    kinds.apply(claim("before"))
    assert class_of(kinds, "before") == "standard"

    adapt(kinds)

    eventually(lambda: nodes_of(kinds, "kube-proxy") == 1, "kube-proxy on the real node alone")
    assert nodes_of(kinds, "kindnet") == 0
    # The API server may take the old default for a moment.
    eventually(lambda: "standard" not in tried(kinds, "after"), "claims without a class by default")
    kinds.apply(claim("after"))
    assert class_of(kinds, "after") == ""
    taints = kinds.kubectl("get", "node", "kind-control-plane", "--output=jsonpath={.spec.taints[*].key}").split()
    assert "node-role.kubernetes.io/control-plane" in taints
    (simulated,) = [node["metadata"]["name"] for node in cpu_nodes(1)]
    taints = kinds.kubectl("get", "node", simulated, "--output=jsonpath={.spec.taints[*].key}").split()
    assert "node-role.kubernetes.io/control-plane" not in taints
