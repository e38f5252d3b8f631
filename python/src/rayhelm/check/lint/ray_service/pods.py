"""GPUs that the pods of a RayService have, as KubeRay reports them to Ray."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from rayhelm.check.lint.ray_service.source import RayService, as_list, as_map
from rayhelm.fleet.yaml_nodes import Path

__all__ = ["Pods", "count_gpus", "is_autoscaled", "list_pods"]

_GPU = re.compile(r".*gpu|nvidia\.com/mig-\d+g\.\d+gb")
"""Resources that KubeRay counts as GPUs of Ray."""
_OTHER = re.compile(r"gpu\.intel\.com/.+|amd\.com/.+|google\.com/tpu|aws\.amazon\.com/neuron.*|habana\.ai/.+")
"""Accelerators that it does not."""


@dataclass(frozen=True)
class Pods:
    """Pods of one group."""

    name: str
    path: Path
    gpus: float | None
    """GPUs of each pod; None if the file does not say it."""
    count: float
    """Most pods; infinite for an autoscaled group without a limit."""
    hosts: int
    """Pods of each replica."""


def list_pods(service: RayService) -> Iterator[Pods]:
    """Yield the pods of the head and of each worker group."""
    autoscaled = is_autoscaled(service)
    for path, group in service.list_groups():
        gpus = count_gpus(group)
        if path[-1] == "headGroupSpec":
            yield Pods("head", path, gpus, 1, 1)
            continue
        hosts = max(1, _number(group.get("numOfHosts"), 1))
        least = _number(group.get("minReplicas"), 0)
        replicas: float = max(_number(group.get("replicas"), 0), least)
        if autoscaled:
            replicas = max(replicas, _number(group["maxReplicas"], 0)) if "maxReplicas" in group else inf
        yield Pods(str(group.get("groupName", "")), path, gpus, replicas * hosts, hosts)


def is_autoscaled(service: RayService) -> bool:
    """Return whether Ray's autoscaler changes the number of workers."""
    return service.cluster.get("enableInTreeAutoscaling") is True


def count_gpus(group: Mapping[str, Any]) -> float | None:
    """Return the GPUs that a pod of a group offers to Ray; None if the file does not say it."""
    stated = as_map(group.get("resources")).get("GPU", as_map(group.get("rayStartParams")).get("num-gpus"))
    if stated is not None:
        return _read(stated)
    spec = as_map(as_map(group.get("template")).get("spec"))
    containers = as_list(spec.get("containers"))
    resources = as_map(as_map(containers[0]).get("resources")) if containers else {}
    limits = as_map(resources.get("limits"))
    found = [value for key, value in sorted(limits.items()) if _GPU.fullmatch(key)]
    if found:
        return _read(found[0])
    if spec.get("resourceClaims") or any(_OTHER.fullmatch(key) for key in limits):
        return None
    return 0


def _read(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
