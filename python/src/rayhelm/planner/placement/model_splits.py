"""The ways in which one replica could stand in a pool: over which hosts, with which TP and PP.

Tensor parallelism stays within a host, because it exchanges activations twice a layer. Pipeline parallelism crosses
hosts or slow links, because it hands them over once a stage.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, groupby

from rayhelm.catalog.engines import Engine
from rayhelm.catalog.gpu import Gpu
from rayhelm.catalog.model import Model
from rayhelm.planner.memory.parallelism import valid_tensor_parallel_sizes
from rayhelm.planner.placement.inventory import HostSite, PoolSite
from rayhelm.spec.models import Parallelism

__all__ = ["Split", "splits", "stages_of"]

MOST_HOSTS = 8
"""A replica over more hosts than this is not proposed, only taken when pinned."""


@dataclass(frozen=True)
class Split:
    """One replica's shape in a pool."""

    pool: PoolSite
    hosts: tuple[HostSite, ...]
    """A host of the right kind for each stage, in a pool of unlike hosts; empty where any hosts do."""
    gpus: tuple[Gpu, ...]
    """Card of each stage."""
    tp: int
    pp: int
    nodes: int
    """Hosts that one replica spans."""
    partition: tuple[int, ...] | None = None

    @property
    def cards(self) -> int:
        return self.tp * self.pp

    @property
    def whole_cards(self) -> float:
        """The same in whole cards, where a replica takes a part of one."""
        return self.cards * self.gpu.part

    @property
    def cards_per_node(self) -> int:
        """Cards that one replica takes on each of its hosts."""
        return self.cards // self.nodes

    @property
    def most_replicas(self) -> int:
        """Replicas that the pool has the cards for when nothing else stands in it."""
        if self.hosts:
            there = Counter(host.gpu.id for host in self.pool.hosts for _ in range(host.cards // self.tp))
            return min(there[gpu] // count for gpu, count in Counter(gpu.id for gpu in self.gpus).items())
        if self.nodes > 1:
            return len(self.pool.hosts) // self.nodes
        return sum(host.cards // self.cards for host in self.sites)

    @property
    def there_is_room(self) -> bool:
        """For one replica at least, on hosts of these kinds."""
        if not self.hosts:
            return sum(host.whole >= self.cards_per_node for host in self.sites) >= self.nodes
        free = Counter(host.gpu.id for host in self.pool.hosts if host.whole >= self.tp)
        return all(free[gpu] >= count for gpu, count in Counter(gpu.id for gpu in self.gpus).items())

    @property
    def sites(self) -> list[HostSite]:
        """Hosts with the card, or the part of one, that the first stage takes."""
        return [host for host in self.pool.hosts if host.gpu.id == self.gpu.id]

    @property
    def gpu(self) -> Gpu:
        return self.gpus[0]

    @property
    def gpu_name(self) -> str:
        return "+".join(dict.fromkeys(gpu.id for gpu in self.gpus))

    @property
    def price_per_hour(self) -> float | None:
        """USD for the cards of one replica."""
        if not self.hosts:
            return None if self.pool.price is None else self.pool.price * self.whole_cards
        prices = [self.pool.host_price(host) for host in self.hosts]
        return None if None in prices else sum(price * self.tp for price in prices if price is not None)

    @property
    def memory_gib(self) -> float:
        """Memory of all its cards, GiB: what stands in for a price that nobody knows."""
        return sum((gpu.usable_gib or 0) * self.tp for gpu in self.gpus)


def splits(model: Model, site: PoolSite, engine: Engine, pin: Parallelism | None) -> Iterator[Split]:
    """Every split worth a look, fewest cards first. Pins leave only what they allow, valid or not."""
    found = _over_like_hosts(model, site, engine, pin) if site.alike else _over_unlike_hosts(model, site, engine, pin)
    partition = pin.layers if pin and pin.layers else None
    for split in sorted(found, key=lambda split: (split.cards, split.nodes, split.pp)):
        yield Split(split.pool, split.hosts, split.gpus, split.tp, split.pp, split.nodes, partition)


def _over_like_hosts(model: Model, site: PoolSite, engine: Engine, pin: Parallelism | None) -> Iterator[Split]:
    if site.cut:
        yield from _on_parts(site, pin)
        return
    host = site.hosts[0]
    for tp in _tensor_sizes(model, engine, host.cards, pin):
        most_here = host.cards // tp
        if not most_here:
            continue
        within = range(1, most_here + 1) if _slow(host) or (pin and pin.tensor) else (1,)
        across = range(2 * most_here, MOST_HOSTS * most_here + 1, most_here)
        pinned = stages_of(pin)
        for pp in [pinned] if pinned else [*within, *(across if tp * most_here == host.cards else ())]:
            nodes = _nodes(pp, most_here)
            if pp > model.layers or nodes > len(site.hosts) or (nodes > 1 and not site.link.spans_hosts):
                continue
            yield Split(site, (), (host.gpu,) * pp, tp, pp, nodes)


def _on_parts(site: PoolSite, pin: Parallelism | None) -> Iterator[Split]:
    """One part for each replica: parts do not reach each other, and an engine sees but one MIG instance."""
    if ((pin and pin.tensor) or 1) > 1 or (stages_of(pin) or 1) > 1:
        return
    for gpu in {host.gpu.id: host.gpu for host in site.hosts}.values():
        yield Split(site, (), (gpu,), 1, 1, 1)


def stages_of(pin: Parallelism | None) -> int | None:
    """Pinned pipeline stages: said, or as many as layers are listed for."""
    return (pin.pipeline or len(pin.layers) or None) if pin else None


def _nodes(pp: int, most_here: int) -> int:
    """Fewest hosts that hold equal numbers of stages, so that all pods are alike and no TP group crosses hosts."""
    return next(nodes for nodes in range(-(-pp // most_here), pp + 1) if pp % nodes == 0)


def _slow(host: HostSite) -> bool:
    """Cards of the host lack a link that joins them all: stages within it may pay. On a fast link, TP always does."""
    link = host.gpu.link
    return not link.fast or host.cards > (link.group or host.cards)


def _over_unlike_hosts(model: Model, site: PoolSite, engine: Engine, pin: Parallelism | None) -> Iterator[Split]:
    """One stage per host, the host with the most memory first; on one host alone, TP over its cards. Hosts with the
    same card stand for each other, so that the kinds are combined and not the hosts."""
    by_memory = sorted(site.hosts, key=lambda host: (-(host.gpu.usable_gib or 0), host.gpu.id, -host.cards))
    kinds = [list(group) for _, group in groupby(by_memory, key=lambda host: host.gpu.id)]
    most = min(len(by_memory), MOST_HOSTS) if site.link.spans_hosts else 1
    for stages in [stages_of(pin) or 0] if stages_of(pin) else range(1, most + 1):
        for chosen in combinations_with_replacement(range(len(kinds)), stages):
            hosts = tuple(host for kind, count in Counter(chosen).items() for host in kinds[kind][:count])
            if len(hosts) < stages:
                continue
            for tp in _tensor_sizes(model, engine, min(host.cards for host in hosts), pin):
                if all(tp <= host.cards for host in hosts):
                    yield Split(site, hosts, tuple(host.gpu for host in hosts), tp, stages, stages)


def _tensor_sizes(model: Model, engine: Engine, most: int, pin: Parallelism | None) -> tuple[int, ...]:
    if pin and pin.tensor:
        return (pin.tensor,)
    return valid_tensor_parallel_sizes(model, engine, most)
