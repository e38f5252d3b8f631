"""A simulated host, and its default size."""

from dataclasses import dataclass, field

from rayhelm.facts.gpu import GpuKind
from rayhelm.fleet.pools import Pool
from rayhelm.planner.workers.plan_workers import CPUS_STEP, MEMORY_GIB_BASE, MEMORY_GIB_PER_GPU

__all__ = ["GIB", "RDMA_SHARES", "Host", "Size", "Taint", "size_of"]

GIB = 2**30

RDMA_SHARES = 63
"""Pods that can share an RDMA adapter: `rdmaHcaMax` in the examples of NVIDIA's network operator."""


@dataclass(frozen=True)
class Size:
    """Allocatable CPU and memory of a host."""

    cpus: float
    """Cores."""
    memory: int
    """Bytes."""


@dataclass(frozen=True)
class Taint:
    """A node taint."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True)
class Host:
    """One host."""

    name: str
    pool: str
    size: Size
    region: str
    """Name of the cluster, because fleets have no regions."""
    gpu_kind: GpuKind | None = None
    """None for a host without GPUs."""
    gpus: int = 0
    parts: dict[str, int] = field(default_factory=dict)
    """Parts of shared GPUs by extended resource, which the device plugin offers instead of whole GPUs."""
    mig: dict[str, int] = field(default_factory=dict)
    """MIG instances of each GPU, by profile."""
    slices: int = 0
    """Time slices of each GPU."""
    rdma_resource: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    """Labels of the fleet file; they override the simulated ones."""
    taints: tuple[Taint, ...] = ()


def size_of(pool: Pool, gpus: int) -> Size:
    """Return the size of the pool's nodes in the fleet file. The default has capacity for the largest worker pod of a
    plan per GPU (or per part of a shared GPU), times two for other pods."""
    cpus = CPUS_STEP * (gpus + 1)
    memory = (MEMORY_GIB_BASE + MEMORY_GIB_PER_GPU) * (gpus + 1) * GIB
    return Size(cpus=pool.cpus_per_node or cpus, memory=int(pool.memory_per_node or memory))
