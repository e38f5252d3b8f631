"""Room of a pod on its node: its part of what the pool states, less DaemonSets and the containers beside Ray."""

from dataclasses import dataclass
from math import ceil

from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.pools import Pool

__all__ = ["LOG_CONTAINER_CPUS", "LOG_CONTAINER_MEMORY_GIB", "NodeRoom", "find_cpu_room", "find_memory_room"]

LOG_CONTAINER_CPUS, LOG_CONTAINER_MEMORY_GIB = 0.1, 1 / 16
"""Requests of the container `logs`: the defaults of `logs.stdout.resources` of chart `ray-service`."""
_DAEMON_SETS_GIB = 1
_ROUNDING = 1e-9


@dataclass(frozen=True)
class NodeRoom:
    """One resource of the nodes of a pool, for pods of one kind."""

    unit: str
    """`CPUs` or `GiB`, the unit of the figures."""
    stated: float
    """What pods can use on a node."""
    reserved: float
    """What DaemonSets request of it."""
    part: float
    """Part of the rest that a pod gets."""
    beside: float = 0
    """Requests of the containers beside Ray in the pod."""

    @property
    def of_pod(self) -> float:
        """What all containers of a pod may request."""
        return (self.stated - self.reserved) * self.part

    def fill(self) -> int:
        """Return the largest whole request of the Ray container; 1 if there is less."""
        return max(1, int(self.of_pod - self.beside + _ROUNDING))

    def has_room(self, request: float) -> bool:
        """Return whether the Ray container can request this much."""
        return request + self.beside <= self.of_pod + _ROUNDING

    def size_node(self, request: float) -> int:
        """Return the smallest whole node on which the Ray container can request this much."""
        return ceil((request + self.beside) / self.part + self.reserved - _ROUNDING)

    def explain(self) -> str:
        """Return what a node has, and what is not for the Ray container."""
        logs = f" and {self.beside:g} for the container `logs`" if self.beside else ""
        return f"of the {self.stated:g} {self.unit} of a node, without {self.reserved:g} for DaemonSets{logs}"


def find_cpu_room(pool: Pool, part: float, fleet: Fleet) -> NodeRoom | None:
    """Return the CPUs for a pod; None if the pool states none."""
    if pool.cpus_per_node is None:
        return None
    beside = LOG_CONTAINER_CPUS if fleet.clusters[pool.cluster].logs.stdout else 0
    return NodeRoom("CPUs", pool.cpus_per_node, pool.daemon_sets.cpus, part, beside)


def find_memory_room(pool: Pool, part: float, fleet: Fleet) -> NodeRoom | None:
    """Return the memory for a pod; None if the pool states none."""
    if pool.memory_per_node is None:
        return None
    beside = LOG_CONTAINER_MEMORY_GIB if fleet.clusters[pool.cluster].logs.stdout else 0
    stated = pool.daemon_sets.memory
    reserved = _DAEMON_SETS_GIB if stated is None else stated / 2**30
    return NodeRoom("GiB", pool.memory_per_node / 2**30, reserved, part, beside)
