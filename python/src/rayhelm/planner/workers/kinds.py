"""Kinds of worker pods: pool, GPU, and number of GPUs. Each kind becomes a worker group."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.pools import Host, Pool
from rayhelm.planner.plan import ModelPlan

__all__ = ["PodKind", "find_hosts", "is_group_of_host", "list_pod_kinds", "name_pod_kinds"]


@dataclass(frozen=True)
class PodKind:
    """One kind of worker pods."""

    pool: str
    gpu: str
    """Name in the fleet file; for a GPU partition, the name in the plan."""
    gpus: int
    """GPUs of one pod."""


def list_pod_kinds(plan: ModelPlan, fleet: Fleet) -> list[PodKind]:
    """Return one kind for all stages, or one for each stage in a pool of unlike hosts."""
    pool = fleet.pools[plan.pool]
    if plan.hosts:
        by_name = {_name(plan.pool, index, host): host for index, host in enumerate(pool.hosts)}
        gpus = plan.shape.tp
        return [PodKind(plan.pool, by_name[host].gpu, gpus) for host in plan.hosts]
    gpus = plan.gpus_per_replica // plan.nodes_per_replica
    return [PodKind(plan.pool, plan.gpu if pool.sharing else pool.gpu or "", gpus)]


def find_hosts(kind: PodKind, pool: Pool) -> list[Host]:
    """Return the hosts of a pool of unlike hosts that can run such pods."""
    return [host for host in pool.hosts if host.gpu == kind.gpu]


def name_pod_kinds(models: Sequence[ModelPlan], fleet: Fleet) -> dict[PodKind, str]:
    """Return the name each kind after its pool, followed by host, GPU or MIG profile and number of GPUs if the pool has
    several kinds."""
    kinds = list(dict.fromkeys(kind for plan in models for kind in list_pod_kinds(plan, fleet)))
    shapes = Counter((kind.pool, kind.gpu) for kind in kinds)
    names: dict[PodKind, str] = {}
    for kind in kinds:
        name = _build_base_name(kind, fleet)
        name = f"{name}-x{kind.gpus}" if shapes[kind.pool, kind.gpu] > 1 else name
        while name in names.values():
            name += "-2"
        names[kind] = name
    return names


def is_group_of_host(group: str, pool: str, index: int, fleet: Fleet) -> bool:
    """Return whether a worker group has the pods of one host, by its name."""
    base = f"{pool}-{_name(pool, index, fleet.pools[pool].hosts[index])}"
    return re.fullmatch(rf"{re.escape(base)}(-x\d+)?(-2)*", group) is not None


def _build_base_name(kind: PodKind, fleet: Fleet) -> str:
    pool = fleet.pools[kind.pool]
    if pool.sharing and len(pool.sharing.layout) > 1:
        return f"{kind.pool}-{kind.gpu.rpartition('/')[2].replace('.', '-')}"
    if not pool.hosts:
        return kind.pool
    hosts = find_hosts(kind, pool)
    if len(hosts) == 1:
        return f"{kind.pool}-{_name(kind.pool, pool.hosts.index(hosts[0]), hosts[0])}"
    return f"{kind.pool}-{''.join(letter if letter.isalnum() else '-' for letter in kind.gpu.lower())}"


def _name(pool: str, index: int, host: Host) -> str:
    return host.name or f"{pool}-{index}"
