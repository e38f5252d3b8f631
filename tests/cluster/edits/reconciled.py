"""Whether a RayService has reconciled: its pods, and the operator's status of them."""

from collections import Counter
from collections.abc import Collection

from cluster.edits.service_state import ServiceState
from cluster.kit.cluster import Object, condition, reason

__all__ = ["is_done", "is_reconciled"]


def is_reconciled(now: ServiceState, invalid: Collection[str] = ()) -> bool:
    """Whether every RayCluster has its pods, and no pod will change.

    The operator creates no pods for RayClusters that it reports as `invalid`.
    """
    clusters = {item["metadata"]["name"]: item for item in now.list_all("RayCluster")}
    pods: dict[str, list[Object]] = {name: [] for name in clusters}
    for pod in now.list_all("Pod"):
        name = pod["metadata"]["labels"]["ray.io/cluster"]
        if name not in clusters or not _is_reconciled(pod):
            return False
        pods[name].append(pod)
    return all(name in invalid or _has_its_pods(cluster, pods[name]) for name, cluster in clusters.items())


def is_done(now: ServiceState) -> bool:
    """Whether the operator has nothing left to do: one RayCluster is active, and the status matches its pods."""
    names = [item["metadata"]["name"] for item in now.list_all("RayCluster")]
    reported = now.service.get("status", {}).get("numServeEndpoints", 0)
    return names == [now.active] and not now.pending and reported == now.endpoints


def _has_its_pods(cluster: Object, pods: list[Object]) -> bool:
    if cluster["spec"].get("suspend"):
        return not pods
    heads = [pod for pod in pods if pod["metadata"]["labels"]["ray.io/node-type"] == "head"]
    there = Counter(pod["metadata"]["labels"]["ray.io/group"] for pod in pods)
    groups = cluster["spec"].get("workerGroupSpecs", [])
    return (
        len(heads) == 1
        and condition(cluster, "HeadPodReady") == condition(heads[0], "Ready")
        and all(there[group["groupName"]] >= _wanted(group) for group in groups)
    )


def _wanted(group: Object) -> int:
    replicas = max(group.get("replicas") or 0, group.get("minReplicas") or 0)
    return int(min(replicas, group.get("maxReplicas", replicas)) * group.get("numOfHosts", 1))


def _is_reconciled(pod: Object) -> bool:
    if "deletionTimestamp" in pod["metadata"]:
        return False
    if reason(pod, "PodScheduled") in ("Unschedulable", "SchedulingGated"):
        return True
    return condition(pod, "Ready") == "True"
