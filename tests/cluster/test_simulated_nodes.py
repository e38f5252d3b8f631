"""How simulated nodes and their pods live: what other tests take for granted of KWOK's stages."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.kit.cluster import Cluster, Object, condition
from cluster.kit.wait import eventually, stays
from testbed.nodes import apply, cpu_nodes, lose_node, start_kubelet, stop_kubelet, uniform

HEALTH = "testbed.rayhelm.dev/pod"
NODES = [node["metadata"]["name"] for node in cpu_nodes(2)]


@pytest.fixture(scope="module", autouse=True)
def nodes(cluster: Cluster) -> Iterator[None]:
    with cluster.machines(cpu_nodes(2)):
        yield


@pytest.fixture
def free(cluster: Cluster) -> Iterator[str]:
    """A namespace that asks nothing of pods."""
    with cluster.namespace({}) as name:
        yield name


def pod(namespace: str, name: str = "one", health: str = "", **spec: Any) -> Object:
    annotations = {HEALTH: health} if health else {}
    container = {"name": "main", "image": "registry.example/none"}
    metadata = {"name": name, "namespace": namespace, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def status(cluster: Cluster, namespace: str, name: str = "one") -> Object:
    found: Object = cluster.one("Pod", name, namespace)["status"]
    return found


def is_ready(cluster: Cluster, namespace: str, name: str = "one") -> bool:
    return cluster.is_ready("Pod", name, namespace)


def waits_for(cluster: Cluster, namespace: str) -> str:
    """Why the first container waits; empty where it does not."""
    containers = status(cluster, namespace).get("containerStatuses", [{}])
    return str(containers[0].get("state", {}).get("waiting", {}).get("reason", ""))


def test_pods_become_ready_at_addresses_of_their_own(cluster: Cluster, free: str) -> None:
    cluster.apply(*(pod(free, f"p{index}") for index in range(20)))
    eventually(lambda: all(is_ready(cluster, free, f"p{index}") for index in range(20)), "20 pods being Ready")
    addresses = {status(cluster, free, f"p{index}")["podIP"] for index in range(20)}
    assert len(addresses) == 20
    assert not any(address.startswith("127.") for address in addresses)


def test_init_containers_have_completed_and_sidecars_run(cluster: Cluster, free: str) -> None:
    image = "registry.example/none"
    before = [{"name": "first", "image": image}, {"name": "beside", "image": image, "restartPolicy": "Always"}]
    cluster.apply(pod(free, initContainers=before))
    eventually(lambda: is_ready(cluster, free), "the pod being Ready")
    first, beside = status(cluster, free)["initContainerStatuses"]
    assert first["state"]["terminated"]["exitCode"] == 0
    assert beside["started"]
    assert "running" in beside["state"]


def test_kwok_does_not_open_a_readiness_gate(cluster: Cluster, free: str) -> None:
    cluster.apply(pod(free, readinessGates=[{"conditionType": "example.com/open"}]))
    eventually(lambda: status(cluster, free)["phase"] == "Running", "the pod running")
    stays(lambda: not is_ready(cluster, free), "a readiness gate was opened", seconds=3)
    opened = {"status": {"conditions": [{"type": "example.com/open", "status": "True"}]}}
    options = ["--subresource=status", "--type=strategic", f"--namespace={free}"]
    cluster.kubectl("patch", "pod", "one", *options, f"--patch={json.dumps(opened)}")
    eventually(lambda: is_ready(cluster, free), "the pod being Ready")


def test_job_completes_and_its_pods_are_counted(cluster: Cluster, free: str) -> None:
    template = {"spec": {**pod(free)["spec"], "restartPolicy": "Never"}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work", "namespace": free}}
    cluster.apply({**job, "spec": {"completions": 3, "parallelism": 3, "template": template}})
    eventually(lambda: cluster.one("Job", "work", free)["status"].get("succeeded") == 3, "the Job being done")
    assert not any(condition(item, "Ready") == "True" for item in cluster.all("Pod", free))


def test_job_fails_as_often_as_it_may(cluster: Cluster, free: str) -> None:
    template = {
        "metadata": {"annotations": {HEALTH: "fails"}},
        "spec": {**pod(free)["spec"], "restartPolicy": "Never"},
    }
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work", "namespace": free}}
    cluster.apply({**job, "spec": {"backoffLimit": 0, "template": template}})
    eventually(lambda: condition(cluster.one("Job", "work", free), "Failed") == "True", "the Job giving up")


@pytest.mark.parametrize(
    ("health", "phase", "reason"),
    [
        ("never-starts", "Pending", "ContainerCreating"),
        ("never-ready", "Running", ""),
        ("crashes", "Running", "CrashLoopBackOff"),
    ],
)
def test_pod_health_stays_until_it_is_reset(health: str, phase: str, reason: str, cluster: Cluster, free: str) -> None:
    cluster.apply(pod(free, health=health))
    eventually(lambda: condition(cluster.one("Pod", "one", free), "Ready") == "False", "the pod being looked at")
    eventually(lambda: waits_for(cluster, free) == reason, f"the container waiting for {reason or 'nothing'}")
    stays(lambda: not is_ready(cluster, free), f"{health} became ready", seconds=3)
    assert status(cluster, free)["phase"] == phase
    cluster.kubectl("annotate", "pod", "one", f"--namespace={free}", "--overwrite", f"{HEALTH}=well")
    eventually(lambda: is_ready(cluster, free), "the pod being Ready")


def test_pod_health_changes_a_running_pod(cluster: Cluster, free: str) -> None:
    cluster.apply(pod(free))
    eventually(lambda: is_ready(cluster, free), "the pod being Ready")
    cluster.kubectl("annotate", "pod", "one", f"--namespace={free}", f"{HEALTH}=crashes")
    eventually(lambda: waits_for(cluster, free) == "CrashLoopBackOff", "the pod crashing")
    assert not is_ready(cluster, free)


def test_environment_sets_the_health_of_pods_of_an_operator(cluster: Cluster, free: str) -> None:
    reported = pod(free)
    reported["spec"]["containers"][0]["env"] = [{"name": "TESTBED_POD", "value": "fails"}]
    reported["spec"]["restartPolicy"] = "Never"
    cluster.apply(reported)
    eventually(lambda: status(cluster, free)["phase"] == "Failed", "the pod failing")


def test_deleted_pod_ends_at_once_and_keeps_its_finalizers(cluster: Cluster, free: str) -> None:
    held = pod(free, "held", terminationGracePeriodSeconds=600)
    held["metadata"]["finalizers"] = ["example.com/held"]
    cluster.apply(held, pod(free, "free", terminationGracePeriodSeconds=600))
    eventually(lambda: is_ready(cluster, free, "held") and is_ready(cluster, free, "free"), "both being Ready")
    cluster.delete("Pod", "held", free)
    cluster.delete("Pod", "free", free)
    eventually(lambda: cluster.find("Pod", "free", free) is None, "the free pod being gone")
    stays(lambda: cluster.find("Pod", "held", free) is not None, "a finalizer was taken off", seconds=3)
    patch = json.dumps({"metadata": {"finalizers": None}})
    cluster.kubectl("patch", "pod", "held", f"--namespace={free}", "--type=merge", f"--patch={patch}")
    eventually(lambda: cluster.find("Pod", "held", free) is None, "the held pod being gone")


def test_node_and_pods_without_kubelet_are_not_ready_until_it_returns(cluster: Cluster, free: str) -> None:
    cluster.apply(pod(free, nodeName=NODES[0]))
    eventually(lambda: is_ready(cluster, free), "the pod being Ready")
    stop_kubelet(NODES[0], cluster.place.kubeconfig)
    try:
        stays(lambda: not cluster.is_ready("Node", NODES[0]), "a dead node became Ready", seconds=3)
        assert not is_ready(cluster, free)
        cluster.delete("Pod", "one", free)
        stays(lambda: cluster.find("Pod", "one", free) is not None, "a dead node ended a pod", seconds=3)
    finally:
        start_kubelet(NODES[0], cluster.place.kubeconfig)
    eventually(lambda: cluster.is_ready("Node", NODES[0]), "the node being Ready")
    eventually(lambda: cluster.find("Pod", "one", free) is None, "the pod being gone")


def test_pod_is_ready_again_when_its_node_is_back(cluster: Cluster, free: str) -> None:
    cluster.apply(pod(free, nodeName=NODES[1]))
    eventually(lambda: is_ready(cluster, free), "the pod being Ready")
    stop_kubelet(NODES[1], cluster.place.kubeconfig)
    assert not is_ready(cluster, free)
    start_kubelet(NODES[1], cluster.place.kubeconfig)
    eventually(lambda: is_ready(cluster, free) and cluster.is_ready("Node", NODES[1]), "both being Ready")


def test_lost_node_takes_its_pods_along(cluster: Cluster, free: str) -> None:
    with cluster.machines(uniform(nodes=1, pool="lost")):
        taint = {"key": "nvidia.com/gpu", "operator": "Exists"}
        cluster.apply(pod(free, nodeName="lost-0", tolerations=[taint]))
        eventually(lambda: is_ready(cluster, free), "the pod being Ready")
        lose_node("lost-0", cluster.place.kubeconfig)
        eventually(lambda: cluster.find("Pod", "one", free) is None, "the pod being gone")
        assert cluster.find("Node", "lost-0") is None


def test_node_can_be_applied_again_and_made_larger(cluster: Cluster) -> None:
    with cluster.machines(uniform(nodes=1, per_node=4, pool="grows")):
        before = cluster.one("Node", "grows-0")
        apply(uniform(nodes=1, per_node=4, pool="grows"), cluster.place.kubeconfig)
        same = cluster.one("Node", "grows-0")
        assert same["status"]["allocatable"] == before["status"]["allocatable"]
        assert same["metadata"]["uid"] == before["metadata"]["uid"]
        apply(uniform(nodes=1, per_node=8, pool="grows"), cluster.place.kubeconfig)
        assert cluster.one("Node", "grows-0")["status"]["allocatable"]["nvidia.com/gpu"] == "8"
