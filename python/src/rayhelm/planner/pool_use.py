"""A pool in the plan: its nodes and GPUs, and how many of them are used."""

from typing import Annotated, NamedTuple

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from rayhelm.facts.closed import Closed, Unchecked

__all__ = ["GpuPart", "NodeGroup", "PoolUse"]


class GpuPart(NamedTuple):
    """What a replica uses of one GPU."""

    model: str
    service: str
    replica: int
    rank: int
    """Which GPU of the replica it is: those of a stage beside each other, then the next data parallel rank."""


Allocation = tuple[tuple[tuple[GpuPart, ...], ...], ...]
"""Parts on each GPU of each node."""


class NodeGroup(Closed):
    """Nodes of a pool that are alike."""

    name: str = ""
    """Name of a host that is alone; empty for several."""
    nodes: int
    gpu: str
    """GPU id, or the one of a part of it: `L4-24GB/2`."""
    gpus: int
    """GPUs of each node, or parts of GPUs."""
    memory_gib: float | None
    """Memory of one that an engine can use, GiB; None if unknown."""


class PoolUse(Closed):
    """GPUs of a pool, and how many of them the plan uses."""

    cluster: str
    gpu: str
    gpus: int
    used: float
    network: str
    sharing: str = ""
    """Partitioning of its GPUs, as text."""
    mig: dict[str, int] = {}
    """MIG instances of each GPU, by profile."""
    time_slices: int = 0
    """Time slices of each GPU; 0 if it is whole or has MIG instances."""
    gpu_resources: dict[str, int]
    """Allocatable GPUs by extended resource (`nvidia.com/mig-3g.40gb`)."""
    nodes: tuple[NodeGroup, ...] = ()
    """Its nodes. With MIG each profile is a group of its own."""
    allocation: SkipJsonSchema[Annotated[Allocation, Unchecked, Field(exclude=True, repr=False)]] = ()
    """What is on each GPU, for all nodes of `nodes` in that order. Kubernetes may choose other nodes."""
