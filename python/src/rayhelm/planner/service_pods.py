"""Pods and volumes of a service in the plan."""

from typing import Literal

from rayhelm.facts.closed import Closed
from rayhelm.planner.reason import Reason

__all__ = ["AccessMode", "ClaimPlan", "WorkerPlan"]

AccessMode = Literal["ReadWriteOnce", "ReadWriteMany"]


class WorkerPlan(Closed):
    """Pods of one worker group."""

    pool: str
    """Empty for pods without GPUs, on which the ingress runs while no model has a replica."""
    gpu: str
    """Name in the fleet file; for a GPU partition, the name in the plan."""
    gpus: int
    """GPUs of one pod."""
    min_pods: int
    max_pods: int
    cpus: int
    """CPUs of one pod, which Ray counts."""
    needed_cpus: int
    """CPUs that replicas and ingresses book on one pod, and those of Ray's own processes."""
    memory_gib: int
    """Memory of one pod, with `/dev/shm`."""
    needed_memory_gib: int
    """Memory of one pod that is known to be used: `/dev/shm`, and the KV cache that engines offload."""
    shm_gib: int
    min_available: int
    """Ready pods that a drain keeps; 0: no budget."""
    is_spread_over_zones: bool
    reasons: tuple[Reason, ...]


class ClaimPlan(Closed):
    """Claim of the volume with downloaded weights."""

    size_gib: int
    access_mode: AccessMode
    needs_several_nodes: bool
    """Pods on several nodes can have the volume at one time."""
    reasons: tuple[Reason, ...]
