"""KubeRay empties Redis when a service with fault tolerance is gone: what its pod needs is still there then."""

from collections.abc import Iterator
from typing import Any

import pytest

from charts.kit import example, over
from cluster.kit.cluster import Cluster, Object
from cluster.kit.helm import Helm
from cluster.kit.references import missing_references
from cluster.kit.wait import eventually, stays
from testbed.nodes import cpu_nodes

NODE = "redis"
LABEL = "rayhelm.dev/test"
KEPT = (("ServiceAccount", "chat"), ("ConfigMap", "chat-vllm"), ("NetworkPolicy", "chat-redis-cleanup"))
FINALIZER = "ray.io/gcs-ft-redis-cleanup-finalizer"


@pytest.fixture(scope="module", autouse=True)
def _machines(cluster: Cluster) -> Iterator[None]:
    """A node for heads alone, and one for workers."""
    head, worker = cpu_nodes(2, cpus=64, memory_gib=256)
    for node, name in ((head, NODE), (worker, f"{NODE}-workers")):
        node["metadata"]["name"] = node["metadata"]["labels"]["kubernetes.io/hostname"] = name
        node["metadata"]["labels"][LABEL] = name
    with cluster.machines([head, worker]):
        yield


def install(helm: Helm, cluster: Cluster, namespace: str) -> None:
    """A service that has a Redis, and its head on a node of its own."""
    values: dict[str, Any] = {
        "kuberay": {"version": cluster.place.kuberay},
        "head": {"nodeSelector": {LABEL: NODE}},
        "workerGroups": {"cpu": {"nodeSelector": {LABEL: f"{NODE}-workers"}}},
        "gcsFaultTolerance": {"enabled": True, "redisAddress": "redis.redis:6379"},
        "networkPolicy": {"redis": {"peer": {"namespace": "redis", "podLabels": {"app": "redis"}}}},
    }
    helm.install("ray-service", "chat", namespace, over(example("stand-in"), values))
    cluster.becomes_ready("chat", namespace)


def cleaners(cluster: Cluster, namespace: str) -> list[Object]:
    return cluster.all("Pod", namespace, {"ray.io/node-type": "redis-cleanup"})


def test_redis_cleanup_pod_has_all_references_after_an_uninstall(
    cluster: Cluster, namespace: str, each_helm: Helm
) -> None:
    install(each_helm, cluster, namespace)
    before = uids(cluster, namespace)
    cluster.kubectl("cordon", NODE)  # otherwise the pod may end before the test reads it
    try:
        each_helm.uninstall("chat", namespace)
        (pod,) = eventually(lambda: cleaners(cluster, namespace), "its pod", shows=lambda: cluster.tell(namespace))
        assert missing_references(cluster, pod) == []
        (policy,) = (item for item in cluster.all("NetworkPolicy", namespace) if selects(item, pod))
        assert [port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]] == [53, 53, 6379]
    finally:
        cluster.kubectl("uncordon", NODE)
    eventually(lambda: not cluster.all("RayCluster", namespace), "the RayCluster going")
    eventually(lambda: "Completed" in of_cleanup(cluster, namespace), "the event of the cleanup")
    assert "FailedCreate" not in of_cleanup(cluster, namespace)

    install(each_helm, cluster, namespace)
    assert uids(cluster, namespace) == before


def of_cleanup(cluster: Cluster, namespace: str) -> set[str]:
    """Reasons of events of the Job that empties Redis."""
    events = cluster.all("Event", namespace)
    return {event["reason"] for event in events if event["involvedObject"]["name"].endswith("-redis-cleanup")}


def uids(cluster: Cluster, namespace: str) -> list[str]:
    return [cluster.one(kind, name, namespace)["metadata"]["uid"] for kind, name in KEPT]


def selects(policy: Object, pod: Object) -> bool:
    """By labels alone, as ours do."""
    wanted = policy["spec"]["podSelector"]["matchLabels"].items()
    return bool(wanted <= pod["metadata"]["labels"].items())


def test_namespace_deleted_before_its_service_gets_no_redis_cleanup_pod(cluster: Cluster, helm: Helm) -> None:
    """The README says to uninstall first."""
    with cluster.namespace() as namespace:
        install(helm, cluster, namespace)
        (name,) = (item["metadata"]["name"] for item in cluster.all("RayCluster", namespace))
        try:
            cluster.delete("namespace", namespace)
            eventually(lambda: is_held(cluster, name, namespace), f"RayCluster {name} going")
            eventually(lambda: not cluster.all("Pod", namespace), "the pods going")
            stays(lambda: is_held(cluster, name, namespace), f"RayCluster {name} waits for Redis to be emptied")
            assert not cluster.all("Job", namespace)
        finally:
            cluster.patch("raycluster", name, namespace, {"metadata": {"finalizers": []}})
        eventually(lambda: not cluster.find("Namespace", namespace), "the namespace going")


def is_held(cluster: Cluster, name: str, namespace: str) -> bool:
    """Deleted, and still there."""
    metadata = cluster.one("RayCluster", name, namespace)["metadata"]
    return "deletionTimestamp" in metadata and FINALIZER in metadata["finalizers"]
