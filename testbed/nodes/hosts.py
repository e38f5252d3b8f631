"""A host that is simulated, and how large it is where the fleet does not say."""

from dataclasses import dataclass, field

from rayhelm.catalog.gpu import GpuKind
from rayhelm.spec.pools import Pool
from rayhelm.values.build.worker_groups import CPUS_STEP, MEMORY_GIB_BASE, MEMORY_GIB_PER_GPU

__all__ = ["GIB", "RDMA_SHARES", "Host", "Size", "Taint", "size_of"]

GIB = 2**30

RDMA_SHARES = 63
"""Pods that may share an adapter: `rdmaHcaMax` in the examples of NVIDIA's network operator."""


@dataclass(frozen=True)
class Size:
    """What pods can have on a host."""

    cpus: float
    """Cores."""
    memory: int
    """Bytes."""


@dataclass(frozen=True)
class Taint:
    """Keeps off pods that do not tolerate it."""

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
    """The cluster's name: fleets do not tell regions."""
    gpu_kind: GpuKind | None = None
    """None for a host without GPUs."""
    gpus: int = 0
    parts: dict[str, int] = field(default_factory=dict)
    """What its device plugin offers in place of whole GPUs, by extended resource, where they are shared."""
    mig: dict[str, int] = field(default_factory=dict)
    """MIG instances of each GPU, by profile."""
    slices: int = 0
    """Time slices of each GPU."""
    rdma_resource: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    """What the fleet says of the host: it wins over what is made up here."""
    taints: tuple[Taint, ...] = ()


def size_of(pool: Pool, gpus: int) -> Size:
    """What the fleet says of the pool's nodes, else room for the largest worker pods that plans make: one for each
    GPU or part of one, of a kind that is shared, and once more as much for what runs beside them."""
    cpus = CPUS_STEP * (gpus + 1)
    memory = (MEMORY_GIB_BASE + MEMORY_GIB_PER_GPU) * (gpus + 1) * GIB
    return Size(cpus=pool.cpus_per_node or cpus, memory=int(pool.memory_per_node or memory))
