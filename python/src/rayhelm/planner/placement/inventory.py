"""Hosts and GPUs of each pool, and which of them are free."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from rayhelm.errors import Fix, FleetError, Problem, Rewrite, each_problem, run_all
from rayhelm.facts import Catalog
from rayhelm.facts.gpu import GpuKind, explain_assumed_memory
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.measurements import FleetMeasurements
from rayhelm.fleet.pools import Pool
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.placement.cost import find_gpu_price, find_provider
from rayhelm.planner.placement.gpu_partitioning import (
    GpuPartitioning,
    partition_gpus,
    rename_parts,
    rename_resource,
)
from rayhelm.planner.placement.measured import find_measurement, measure_gpu
from rayhelm.planner.placement.pool_network import PoolNetwork, measure_network
from rayhelm.planner.pool_use import GpuPart

__all__ = [
    "HostInventory",
    "PoolInventory",
    "build_inventories",
    "warn_ambiguous_gpus",
    "warn_assumed_memory",
    "warn_several_providers",
    "warn_unknown_prices",
]


@dataclass(eq=False)
class HostInventory:
    """One host; in a pool with partitioned GPUs, the parts of one kind on a host."""

    name: str
    gpu: GpuKind
    gpu_count: int
    """GPUs, or parts of partitioned GPUs."""
    free: list[float] = field(default_factory=list)
    """Free fraction of each GPU, 0 to 1."""
    parts: list[tuple[GpuPart, ...]] = field(default_factory=list)
    """What uses each GPU; empty if it is free."""
    free_gpu_count: int = field(init=False)
    """GPUs of which no part is used."""

    def __post_init__(self) -> None:
        self.free = self.free or [1.0] * self.gpu_count
        self.parts = self.parts or [()] * self.gpu_count
        self.free_gpu_count = sum(share == 1.0 for share in self.free)

    @property
    def owners(self) -> list[str]:
        """Service that uses each GPU or a fraction of it; empty if free."""
        return [parts[0].service if parts else "" for parts in self.parts]

    def clear(self) -> None:
        """Free all GPUs."""
        self.free, self.parts = [1.0] * self.gpu_count, [()] * self.gpu_count
        self.free_gpu_count = self.gpu_count

    def take_whole(self, parts: Iterable[GpuPart]) -> None:
        """Take a free GPU for each part."""
        free = [index for index, there in enumerate(self.parts) if not there]
        for index, part in zip(free, parts, strict=False):
            self.free[index], self.parts[index] = 0.0, (part,)
            self.free_gpu_count -= 1

    def take(self, index: int, share: float, part: GpuPart) -> None:
        self.free_gpu_count -= not self.parts[index]
        self.free[index] = round(self.free[index] - share, 6)
        self.parts[index] = (*self.parts[index], part)


@dataclass(eq=False)
class PoolInventory:
    """One pool, resolved against the catalog."""

    name: str
    pool: Pool
    hosts: list[HostInventory]
    network: PoolNetwork
    price: float | None
    """USD per GPU and hour; None if unknown, or if the GPUs of the pool have different prices."""
    price_source: str
    partitioning: GpuPartitioning | None = None
    """The parts of its GPUs; None if they are whole. Each kind of part is a HostInventory of its own."""

    @property
    def node_count(self) -> int:
        return self.pool.nodes or len(self.hosts)

    @property
    def is_uniform(self) -> bool:
        return not self.pool.hosts

    @property
    def gpu_name(self) -> str:
        """GPU id, of whole GPUs; different ones joined with `+`."""
        return "+".join(dict.fromkeys(host.gpu.of or host.gpu.id for host in self.hosts))

    @property
    def gpu_count(self) -> int:
        """Whole GPUs, also if they are partitioned."""
        return round(sum(host.gpu_count * host.gpu.part for host in self.hosts))

    @property
    def used(self) -> float:
        """GPUs and fractions of GPUs that are allocated."""
        return round(sum((host.gpu_count - sum(host.free)) * host.gpu.part for host in self.hosts), 4)

    @property
    def idle_shares(self) -> dict[str, float]:
        """By service: GPUs that stay unused, because pods request whole GPUs and services do not share them."""
        left: dict[str, float] = {}
        for host in self.hosts:
            for free, owner in zip(host.free, host.owners, strict=True):
                if owner and free > 0:
                    left[owner] = round(left.get(owner, 0.0) + free * host.gpu.part, 4)
        return left

    @property
    def gpu_resources(self) -> dict[str, int]:
        """Allocatable GPUs of all nodes, by extended resource."""
        resources = dict.fromkeys(host.gpu.resource for host in self.hosts)
        return {
            resource: sum(host.gpu_count for host in self.hosts if host.gpu.resource == resource)
            for resource in resources
        }

    @cached_property
    def hosts_by_gpu(self) -> dict[str, list[HostInventory]]:
        """Hosts by id of their GPU, or of the part of one."""
        groups: dict[str, list[HostInventory]] = {}
        for host in self.hosts:
            groups.setdefault(host.gpu.id, []).append(host)
        return groups

    def find_hosts_of(self, model: str) -> tuple[HostInventory, ...]:
        """Return the hosts of the first replica of a model, in the order of its stages."""
        ranks = {
            host: min(part.rank for part in mine)
            for host in self.hosts
            if (mine := [part for parts in host.parts for part in parts if part.model == model and not part.replica])
        }
        return tuple(sorted(ranks, key=ranks.__getitem__))

    @property
    def has_price(self) -> bool:
        """Return whether the price of some of its GPUs is known."""
        return any(self.host_price(host) is not None for host in self.hosts)

    def host_price(self, host: HostInventory) -> float | None:
        return find_gpu_price(host.gpu, self.pool)[0]


def build_inventories(fleet: Fleet, measured: FleetMeasurements | None, facts: Catalog) -> dict[str, PoolInventory]:
    """Resolve every pool. Raises FleetError with all unknown GPUs and networks."""
    return run_all(
        {name: partial(_build_inventory, name, pool, fleet, measured, facts) for name, pool in fleet.pools.items()}
    )


def warn_ambiguous_gpus(fleet: Fleet, facts: Catalog) -> Iterator[str]:
    """Yield warnings: names of GPUs that several boards have, with the board that the plan counts with."""
    for name, pool in fleet.pools.items():
        for written in dict.fromkeys([pool.gpu, *(host.gpu for host in pool.hosts)]):
            if written and (explained := facts.explain_gpu_name(written)):
                yield f"pool `{name}`: {explained}"


def warn_assumed_memory(inventories: Iterable[PoolInventory]) -> Iterator[str]:
    """Yield warnings: GPUs whose usable memory was not measured."""
    for inventory in inventories:
        for gpu in {host.gpu.id: host.gpu for host in inventory.hosts}.values():
            if gpu.is_memory_assumed:
                yield f"pool `{inventory.name}`: {explain_assumed_memory(gpu)}"


def warn_unknown_prices(inventories: Iterable[PoolInventory]) -> Iterator[str]:
    """Yield warnings: pools of unknown price beside others with a price, which are the last choice."""
    by_pool = {each.name: [host.gpu.id for host in each.hosts if each.host_price(host) is None] for each in inventories}
    if not all(by_pool.values()):
        for name, gpus in by_pool.items():
            if gpus:
                yield (
                    f"pool `{name}`: the price of {gpus[0]} is unknown, so a model that a pool with a price serves is"
                    " not placed on it: set `price` of the pool, USD per GPU and hour"
                )


def warn_several_providers(inventories: Iterable[PoolInventory], fleet: Fleet) -> Iterator[str]:
    """Yield the warning that a model which may be on several pools is compared by prices of several providers."""
    pools: dict[str, list[str]] = {}
    for each in inventories:
        for provider in dict.fromkeys(find_provider(host.gpu, each.pool) for host in each.hosts):
            pools.setdefault(provider, []).append(each.name)
    pools.pop("", None)
    if len(pools) > 1 and any(not spec.pool and not spec.pools for spec in fleet.models.values()):
        listed = "; ".join(f"{name}: {', '.join(f'`{pool}`' for pool in found)}" for name, found in pools.items())
        yield (
            f"the prices of the pools are of several providers ({listed}), so another pool may be the cheapest one for"
            " you: set `price` of the pools, or `prices.onDemand` or `prices.provider` of the fleet"
        )


def _build_inventory(
    name: str, pool: Pool, fleet: Fleet, measured: FleetMeasurements | None, facts: Catalog
) -> PoolInventory:
    path = ("pools", name)
    hosts, partitioning = [], None
    if pool.gpu:
        gpu = _find_gpu(pool.gpu, (*path, "gpu"), facts)
        partitioning = rename_parts(partition_gpus(name, pool, gpu, facts), pool)
        gpu = rename_resource(gpu, pool)
        hosts = [
            HostInventory(f"{name}-{index}", part, (pool.gpus_per_node or 1) * count)
            for index in range(pool.nodes or 0)
            for part, count in (partitioning.parts if partitioning else ((gpu, 1),))
        ]
    for index, host in enumerate(pool.hosts):
        gpu = _find_gpu(host.gpu, (*path, "hosts", index, "gpu"), facts)
        hosts.append(HostInventory(host.name or f"{name}-{index}", rename_resource(gpu, pool), host.gpus))
    _check_vendors(path, hosts)
    prices = {find_gpu_price(host.gpu, pool) for host in hosts}
    price, source = prices.pop() if len(prices) == 1 else (None, "the hosts have different prices")
    network = _find_network(pool.network, (*path, "network"), fleet, facts)
    inventory = PoolInventory(name, pool, hosts, network, price, source, partitioning)
    if measurement := find_measurement(name, inventory.gpu_name, measured):
        inventory.network = measure_network(network, measurement)
        if pool.gpu and not partitioning:
            inventory.hosts = [replace(host, gpu=measure_gpu(host.gpu, measurement)) for host in hosts]
    return inventory


def _find_gpu(name: str, path: tuple[str | int, ...], facts: Catalog) -> GpuKind:
    if "/" in name:
        message = f"{name} is a part of a GPU, and a pool lists whole GPUs; `sharing` partitions them"
        fix = Fix(value=name.partition("/")[0], why="and, for example, `sharing: {shares: 2}`")
        raise FleetError(problem_at(path, message, fix))
    with each_problem(lambda each: _locate(each, path, "; `gpus` describes others")):
        gpu = facts.gpu(name)
    if gpu.vendor == "google":
        raise FleetError(problem_at(path, f"{gpu.id}: {gpu.limit}", Fix.advice("use GPUs")))
    return gpu


def _find_network(name: str, path: tuple[str | int, ...], fleet: Fleet, facts: Catalog) -> PoolNetwork:
    if own := fleet.networks.get(name):
        return PoolNetwork(name, own.bandwidth / 8e9, own.rdma, True, own.measured, own.latency)
    with each_problem(lambda each: _locate(each, path)):
        known = facts.network(name)
    line_rate = known.bandwidth_gbit_per_s / 8 if known.bandwidth_gbit_per_s else None
    # The latency of the internet is not known, so no replica is split over it.
    return PoolNetwork(
        known.id, known.effective_gb_per_s or line_rate, known.rdma, spans_hosts=known.kind != "internet"
    )


def _locate(problem: Problem, path: tuple[str | int, ...], more: str = "") -> Problem:
    return problem_at(path, problem.message + more, problem.fix, alternatives=problem.alternatives)


def _check_vendors(path: tuple[str, ...], hosts: list[HostInventory]) -> None:
    """Raise FleetError if the hosts have GPUs of several vendors: a pool has one image, which is for one of them."""
    vendors = list(dict.fromkeys(host.gpu.vendor for host in hosts))
    if len(vendors) < 2:
        return
    first, *others = vendors
    kept = Rewrite(
        (*path, "hosts"),
        lambda listed: [item for item, host in zip(listed, hosts, strict=True) if host.gpu.vendor == first],
    )
    message = f"the hosts have GPUs of {' and '.join(vendors)}, and a pool has one image, which is for one vendor"
    why = f"and a pool of its own for the hosts with GPUs of {' and of '.join(others)}"
    fix = Fix("", why=why, rewrite=kept)
    raise FleetError(problem_at((*path, "hosts"), message, fix))
