"""Resource requests of pods, and free capacity of nodes. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rayhelm.facts.quantities import parse_quantity

__all__ = ["ZERO", "Capacity", "can_schedule", "list_free_capacity", "list_pod_requests", "sum_requests"]


@dataclass(frozen=True)
class Capacity:
    """CPU and memory of a node or of a pod."""

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
    """Return the requests of each pod of Deployments and RayServices, with the minimum number of workers."""
    return [capacity for item in objects for capacity in _list_requests(item)]


def list_free_capacity(nodes: Sequence[Mapping[str, Any]], pods: Sequence[Mapping[str, Any]]) -> list[Capacity]:
    """Return the free capacity of each node that accepts pods."""
    schedulable = [node for node in nodes if not node["spec"].get("unschedulable") and not _is_tainted(node)]
    return [
        sum(
            (ZERO - sum_requests(pod["spec"]) for pod in pods if _is_on(node, pod)),
            start=_read_capacity(node["status"].get("allocatable", {})),
        )
        for node in schedulable
    ]


def can_schedule(pods: Sequence[Capacity], nodes: Sequence[Capacity]) -> bool:
    """Return whether all pods fit on the nodes, scheduled from the largest to the smallest."""
    free = list(nodes)
    for pod in sorted(pods, key=lambda capacity: capacity.memory, reverse=True):
        index = next((index for index, capacity in enumerate(free) if capacity.can_hold(pod)), None)
        if index is None:
            return False
        free[index] -= pod
    return True


def sum_requests(spec: Mapping[str, Any]) -> Capacity:
    """Return the request of a pod: the sum of its containers, or the largest init container."""
    total = sum((_request(each) for each in spec.get("containers", ())), start=ZERO)
    init = [_request(each) for each in spec.get("initContainers", ())]
    return Capacity(
        max([total.memory, *(capacity.memory for capacity in init)]),
        max([total.cpu, *(capacity.cpu for capacity in init)]),
    )


def _list_requests(item: Mapping[str, Any]) -> Iterator[Capacity]:
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
    return _read_capacity({**resources.get("limits", {}), **resources.get("requests", {})})


def _read_capacity(resources: Mapping[str, Any]) -> Capacity:
    return Capacity(*(float(parse_quantity(resources.get(name, 0))) for name in ("memory", "cpu")))


def _is_tainted(node: Mapping[str, Any]) -> bool:
    """Return whether a taint keeps stand-ins away: they have no tolerations."""
    return any(taint["effect"] in ("NoSchedule", "NoExecute") for taint in node["spec"].get("taints", ()))


def _is_on(node: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    has_ended = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return bool(pod["spec"].get("nodeName") == node["metadata"]["name"]) and not has_ended
