"""What makes worker pods alike: the pool, the card, and how many of it one pod takes. Each kind is a worker group."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rayhelm.planner.plan import ModelPlan
from rayhelm.spec.load import LoadedFleet
from rayhelm.spec.pools import Host, Pool

__all__ = ["PodKind", "hosts_of", "kinds_of", "names_of"]


@dataclass(frozen=True)
class PodKind:
    """Pods of one shape."""

    pool: str
    gpu: str
    """As the fleet file spells it; a part of a card as the plan does."""
    cards: int
    """Of one pod."""


def kinds_of(plan: ModelPlan, loaded: LoadedFleet) -> list[PodKind]:
    """One for all stages; in a pool of unlike hosts, one for each stage."""
    pool = loaded.fleet.pools[plan.pool]
    if plan.hosts:
        by_name = {_name(plan.pool, index, host): host for index, host in enumerate(pool.hosts)}
        cards = plan.tensor_parallel_size
        return [PodKind(plan.pool, by_name[host].gpu, cards) for host in plan.hosts]
    cards = plan.tensor_parallel_size * plan.pipeline_parallel_size // plan.nodes_per_replica
    return [PodKind(plan.pool, plan.gpu if pool.sharing else pool.gpu or "", cards)]


def hosts_of(kind: PodKind, pool: Pool) -> list[Host]:
    """Hosts of an unlike pool that such pods can stand on."""
    return [host for host in pool.hosts if host.gpu == kind.gpu]


def names_of(models: Sequence[ModelPlan], loaded: LoadedFleet) -> dict[PodKind, str]:
    """The pool's name; behind it the host, card or MIG profile, and the number of cards, where a pool has several kinds
    of pods."""
    kinds = list(dict.fromkeys(kind for plan in models for kind in kinds_of(plan, loaded)))
    shapes = Counter((kind.pool, kind.gpu) for kind in kinds)
    names: dict[PodKind, str] = {}
    for kind in kinds:
        name = _base_name(kind, loaded)
        name = f"{name}-x{kind.cards}" if shapes[kind.pool, kind.gpu] > 1 else name
        while name in names.values():
            name += "-2"
        names[kind] = name
    return names


def _base_name(kind: PodKind, loaded: LoadedFleet) -> str:
    pool = loaded.fleet.pools[kind.pool]
    if pool.sharing and len(pool.sharing.layout) > 1:
        return f"{kind.pool}-{kind.gpu.rpartition('/')[2].replace('.', '-')}"
    if not pool.hosts:
        return kind.pool
    hosts = hosts_of(kind, pool)
    if len(hosts) == 1:
        return f"{kind.pool}-{_name(kind.pool, pool.hosts.index(hosts[0]), hosts[0])}"
    return f"{kind.pool}-{''.join(letter if letter.isalnum() else '-' for letter in kind.gpu.lower())}"


def _name(pool: str, index: int, host: Host) -> str:
    return host.name or f"{pool}-{index}"
