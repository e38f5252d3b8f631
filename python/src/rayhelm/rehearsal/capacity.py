"""The room that pods ask for, and the room that nodes have left. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["ZERO", "Capacity", "can_schedule", "list_free_capacity", "list_pod_requests", "sum_requests"]

_UNITS = {"m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


@dataclass(frozen=True)
class Capacity:
    """On a node, or for a pod."""

    memory: float
    """Bytes."""
    cpu: float

    def __add__(self, other: "Capacity") -> "Capacity":
        return Capacity(self.memory + other.memory, self.cpu + other.cpu)

    def __sub__(self, other: "Capacity") -> "Capacity":
        return Capacity(self.memory - other.memory, self.cpu - other.cpu)

    def can_hold(self, other: "Capacity") -> bool:
        return self.memory >= other.memory and self.cpu >= other.cpu

    def __str__(self) -> str:
        return f"{self.memory / 2**30:.1f} GiB and {self.cpu:.1f} CPUs"


ZERO = Capacity(0, 0)


def list_pod_requests(objects: Sequence[Mapping[str, Any]]) -> list[Capacity]:
    """One for each pod of Deployments and RayServices, at the least number of workers."""
    return [room for item in objects for room in _asked(item)]


def list_free_capacity(nodes: Sequence[Mapping[str, Any]], pods: Sequence[Mapping[str, Any]]) -> list[Capacity]:
    """One for each node that takes pods."""
    open_ = [node for node in nodes if not node["spec"].get("unschedulable") and not _walled(node)]
    return [
        sum(
            (ZERO - sum_requests(pod["spec"]) for pod in pods if _holds(node, pod)),
            start=_room(node["status"].get("allocatable", {})),
        )
        for node in open_
    ]


def can_schedule(pods: Sequence[Capacity], nodes: Sequence[Capacity]) -> bool:
    """Whether all pods find a node, the largest ones first."""
    free = list(nodes)
    for pod in sorted(pods, key=lambda room: room.memory, reverse=True):
        index = next((index for index, room in enumerate(free) if room.can_hold(pod)), None)
        if index is None:
            return False
        free[index] -= pod
    return True


def sum_requests(spec: Mapping[str, Any]) -> Capacity:
    """Of a pod: what its containers ask for together, or an init container alone."""
    together = sum((_request(each) for each in spec.get("containers", ())), start=ZERO)
    alone = [_request(each) for each in spec.get("initContainers", ())]
    return Capacity(
        max([together.memory, *(room.memory for room in alone)]), max([together.cpu, *(room.cpu for room in alone)])
    )


def _asked(item: Mapping[str, Any]) -> Iterator[Capacity]:
    if item["kind"] == "Deployment":
        yield from [sum_requests(item["spec"]["template"]["spec"])] * item["spec"].get("replicas", 1)
    if item["kind"] == "RayService":
        cluster = item["spec"]["rayClusterConfig"]
        sidecar = cluster.get("autoscalerOptions", {}) if cluster.get("enableInTreeAutoscaling") else {}
        yield sum_requests(cluster["headGroupSpec"]["template"]["spec"]) + _request(sidecar)
        for group in cluster.get("workerGroupSpecs", ()):
            count = group.get("minReplicas", 0) * group.get("numOfHosts", 1)
            yield from [sum_requests(group["template"]["spec"])] * count


def _request(container: Mapping[str, Any]) -> Capacity:
    resources = container.get("resources") or {}
    return _room({**resources.get("limits", {}), **resources.get("requests", {})})


def _room(resources: Mapping[str, Any]) -> Capacity:
    return Capacity(_number(resources.get("memory", 0)), _number(resources.get("cpu", 0)))


def _number(quantity: str | float) -> float:
    text = str(quantity)
    unit = next((unit for unit in sorted(_UNITS, key=len, reverse=True) if text.endswith(unit)), "")
    return float(text.removesuffix(unit)) * _UNITS.get(unit, 1)


def _walled(node: Mapping[str, Any]) -> bool:
    """Stand-ins tolerate nothing."""
    return any(taint["effect"] in ("NoSchedule", "NoExecute") for taint in node["spec"].get("taints", ()))


def _holds(node: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    over = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return bool(pod["spec"].get("nodeName") == node["metadata"]["name"]) and not over
