"""Whether something is still under way: pods that come or go, and a controller that has not seen it yet."""

from collections import Counter
from collections.abc import Collection

from cluster.edits.story import Moment
from cluster.kit.cluster import Object, condition, reason

__all__ = ["is_done", "is_settled"]


def is_settled(now: Moment, invalid: Collection[str] = ()) -> bool:
    """Every RayCluster has the pods that it asks for, and every pod is as it will be. Of RayClusters that the operator
    calls `invalid` it makes no pods."""
    clusters = {item["metadata"]["name"]: item for item in now.all("RayCluster")}
    pods: dict[str, list[Object]] = {name: [] for name in clusters}
    for pod in now.all("Pod"):
        name = pod["metadata"]["labels"]["ray.io/cluster"]
        if name not in clusters or not _is_settled(pod):
            return False
        pods[name].append(pod)
    return all(name in invalid or _has_its_pods(cluster, pods[name]) for name, cluster in clusters.items())


def is_done(now: Moment) -> bool:
    """Nothing is left to be done: one RayCluster serves, and its status is that of its pods."""
    names = [item["metadata"]["name"] for item in now.all("RayCluster")]
    said = now.service.get("status", {}).get("numServeEndpoints", 0)
    return names == [now.active] and not now.pending and said == now.endpoints


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


def _is_settled(pod: Object) -> bool:
    if "deletionTimestamp" in pod["metadata"]:
        return False
    if reason(pod, "PodScheduled") in ("Unschedulable", "SchedulingGated"):
        return True
    return condition(pod, "Ready") == "True"
