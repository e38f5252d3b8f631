"""Possible splits of one replica over the GPUs of a pool: hosts, tensor and pipeline parallel sizes.

Tensor parallelism stays within a host, because it exchanges activations twice per layer. Pipeline parallelism crosses
hosts or slow links, because it sends them once per stage.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, groupby, islice

from rayhelm.facts.engines import EngineConstants
from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.model import Checkpoint
from rayhelm.fleet.models import Parallelism
from rayhelm.planner.memory.parallelism import list_tensor_parallel_sizes
from rayhelm.planner.placement.inventory import HostInventory, PoolInventory
from rayhelm.planner.shape import ReplicaShape

__all__ = ["ModelSplit", "count_pinned_stages", "list_splits"]

MOST_HOSTS = 8
"""Splits over more hosts are only used if they are pinned."""


@dataclass(frozen=True, slots=True)
class ModelSplit:
    """One way to split a replica over a pool."""

    inventory: PoolInventory
    hosts: tuple[HostInventory, ...]
    """A host of the right kind for each stage, in a pool with different hosts; else empty."""
    gpus: tuple[GpuKind, ...]
    """GPU of each stage."""
    shape: ReplicaShape
    """Its data parallel ranks are all on one host."""
    nodes: int
    """Hosts that one replica spans."""

    def on_pool(self, inventory: PoolInventory) -> "ModelSplit":
        """Return the same split on another pool of its kind."""
        return ModelSplit(inventory, self.hosts, self.gpus, self.shape, self.nodes)

    @property
    def whole_gpu_count(self) -> float:
        """GPUs of one replica, in whole ones; a fraction if it runs on a part of one."""
        return self.shape.gpu_count * self.gpu.part

    @property
    def gpus_per_node(self) -> int:
        """GPUs of one replica on each of its hosts."""
        return self.shape.gpu_count // self.nodes

    @property
    def max_replicas(self) -> int:
        """Replicas that fit in the empty pool."""
        if self.hosts:
            hosts, tp = self.inventory.hosts, self.shape.tp
            there = Counter(host.gpu.id for host in hosts for _ in range(host.gpu_count // tp))
            return min(there[gpu] // count for gpu, count in Counter(gpu.id for gpu in self.gpus).items())
        if self.nodes > 1:
            return len(self.inventory.hosts) // self.nodes
        return sum(host.gpu_count // self.shape.gpu_count for host in self.matching_hosts)

    def has_room_in(self, inventory: PoolInventory) -> bool:
        """Return whether hosts of these kinds in a pool have enough free GPUs for one replica."""
        if not self.hosts:
            each, missing = self.gpus_per_node, self.nodes
            enough = (host for host in inventory.hosts_by_gpu.get(self.gpu.id, ()) if host.free_gpu_count >= each)
            return len(list(islice(enough, missing))) == missing
        free = Counter(host.gpu.id for host in inventory.hosts if host.free_gpu_count >= self.shape.tp)
        return all(free[gpu] >= count for gpu, count in Counter(gpu.id for gpu in self.gpus).items())

    @property
    def matching_hosts(self) -> list[HostInventory]:
        """Hosts with the GPU, or the part of one, of the first stage."""
        return self.inventory.hosts_by_gpu.get(self.gpu.id, [])

    @property
    def gpu(self) -> GpuKind:
        return self.gpus[0]

    @property
    def gpu_name(self) -> str:
        return "+".join(dict.fromkeys(gpu.id for gpu in self.gpus))

    @property
    def price_per_hour(self) -> float | None:
        """USD for the GPUs of one replica."""
        return self.get_price_in(self.inventory)

    def get_price_in(self, inventory: PoolInventory) -> float | None:
        """Return the same for another pool of its kind."""
        if not self.hosts:
            return None if inventory.price is None else inventory.price * self.whole_gpu_count
        prices = [inventory.host_price(host) for host in self.hosts]
        return None if None in prices else sum(price * self.shape.tp for price in prices if price is not None)

    @property
    def memory_gib(self) -> float:
        """Memory of all its GPUs, GiB; compared if a price is unknown."""
        return sum((gpu.usable_gib or 0) * self.shape.tp * self.shape.dp for gpu in self.gpus)


def list_splits(
    model: Checkpoint, inventory: PoolInventory, engine: EngineConstants, pin: Parallelism | None
) -> Iterator[ModelSplit]:
    """List the splits to try, fewest GPUs first. With pins, only those that the pins allow, valid or not."""
    found = (
        _list_splits_over_like_hosts(model, inventory, engine, pin)
        if inventory.is_uniform
        else _list_splits_over_unlike_hosts(model, inventory, engine, pin)
    )
    ordered = sorted(found, key=lambda split: (split.shape.gpu_count, split.nodes, split.shape.pp))
    if not pin or not pin.layers:
        yield from ordered
        return
    for split in ordered:
        yield replace(split, shape=replace(split.shape, partition=pin.layers))


def _list_splits_over_like_hosts(
    model: Checkpoint, inventory: PoolInventory, engine: EngineConstants, pin: Parallelism | None
) -> Iterator[ModelSplit]:
    if inventory.partitioning:
        yield from _list_splits_on_parts(inventory, pin)
        return
    host = inventory.hosts[0]
    if pin and pin.data and pin.data > 1:
        yield from _list_splits_with_ranks(model, inventory, engine, pin, pin.data)
        return
    for tp, has_expert_parallel in _list_tensor_sizes(model, engine, host.gpu_count, pin):
        most_here = host.gpu_count // tp
        if not most_here:
            continue
        within = range(1, most_here + 1) if _is_slow(host) or (pin and pin.tensor) else (1,)
        across = range(2 * most_here, MOST_HOSTS * most_here + 1, most_here)
        pinned = count_pinned_stages(pin)
        for pp in [pinned] if pinned else [*within, *(across if tp * most_here == host.gpu_count else ())]:
            nodes = _count_nodes(pp, most_here)
            if pp > model.layers or nodes > len(inventory.hosts) or (nodes > 1 and not inventory.network.spans_hosts):
                continue
            shape = ReplicaShape(tp, pp, has_expert_parallel=has_expert_parallel)
            yield ModelSplit(inventory, (), (host.gpu,) * pp, shape, nodes)


def _list_splits_with_ranks(
    model: Checkpoint, inventory: PoolInventory, engine: EngineConstants, pin: Parallelism, dp: int
) -> Iterator[ModelSplit]:
    """Yield splits with data parallel ranks on one host: Ray packs a group of them by best effort only."""
    host, stages = inventory.hosts[0], count_pinned_stages(pin) or 1
    expert = pin.expert is not False
    sizes = list_tensor_parallel_sizes(model, engine, host.gpu_count // dp, has_expert_parallel=expert, dp=dp)
    for tp in (pin.tensor,) if pin.tensor else sizes or (1,):
        # Replicas are alike, so ranks that do not divide a host would leave GPUs of it that no other replica can use.
        if host.gpu_count % (tp * dp * stages) == 0:
            yield ModelSplit(inventory, (), (host.gpu,) * stages, ReplicaShape(tp, stages, dp, expert), 1)


def _list_splits_on_parts(inventory: PoolInventory, pin: Parallelism | None) -> Iterator[ModelSplit]:
    """Yield one part per replica: parts have no link to each other, and an engine sees only one MIG instance."""
    if ((pin and pin.tensor) or 1) > 1 or (count_pinned_stages(pin) or 1) > 1 or (pin and (pin.expert or pin.data)):
        return
    for gpu in {host.gpu.id: host.gpu for host in inventory.hosts}.values():
        yield ModelSplit(inventory, (), (gpu,), ReplicaShape(), 1)


def count_pinned_stages(pin: Parallelism | None) -> int | None:
    """Return the pinned number of pipeline stages: `pipeline`, or the length of `layers`; None if not pinned."""
    return (pin.pipeline or len(pin.layers) or None) if pin else None


def _count_nodes(pp: int, most_here: int) -> int:
    """Return fewest hosts that hold equal numbers of stages, so that all pods are alike and no TP group crosses
    hosts."""
    return next(nodes for nodes in range(-(-pp // most_here), pp + 1) if pp % nodes == 0)


def _is_slow(host: HostInventory) -> bool:
    """Return whether no fast link joins all GPUs of the host: then pipeline stages within it can be faster than TP."""
    link = host.gpu.link
    return not link.fast or host.gpu_count > (link.group or host.gpu_count)


def _list_splits_over_unlike_hosts(
    model: Checkpoint, inventory: PoolInventory, engine: EngineConstants, pin: Parallelism | None
) -> Iterator[ModelSplit]:
    """Yield one stage per host, the host with most memory first; on a single host, TP over its GPUs. Hosts with the
    same GPU are interchangeable, so kinds of hosts are combined and not hosts."""
    by_memory = sorted(inventory.hosts, key=lambda host: (-(host.gpu.usable_gib or 0), host.gpu.id, -host.gpu_count))
    kinds = [list(group) for _, group in groupby(by_memory, key=lambda host: host.gpu.id)]
    if pin and (pin.data or 1) > 1:
        return
    most = min(len(by_memory), MOST_HOSTS) if inventory.network.spans_hosts else 1
    for stages in [count_pinned_stages(pin) or 0] if count_pinned_stages(pin) else range(1, most + 1):
        for chosen in combinations_with_replacement(range(len(kinds)), stages):
            hosts = tuple(host for kind, count in Counter(chosen).items() for host in kinds[kind][:count])
            if len(hosts) < stages:
                continue
            most_here = min(host.gpu_count for host in hosts)
            for tp, has_expert_parallel in _list_tensor_sizes(model, engine, most_here, pin):
                if tp <= most_here:
                    gpus = tuple(host.gpu for host in hosts)
                    shape = ReplicaShape(tp, stages, has_expert_parallel=has_expert_parallel)
                    yield ModelSplit(inventory, hosts, gpus, shape, stages)


def _list_tensor_sizes(
    model: Checkpoint, engine: EngineConstants, most: int, pin: Parallelism | None
) -> list[tuple[int, bool]]:
    """Return tensor parallel sizes, each with whether the GPUs hold whole experts.

    Both ways read and send the same bytes, so the estimate of the speed is the same: without a pin, whole experts are
    only for sizes that cannot divide each expert."""
    expert = pin.expert if pin else None
    whole = list_tensor_parallel_sizes(model, engine, most) if not expert else ()
    by_number = (
        list_tensor_parallel_sizes(model, engine, most, has_expert_parallel=True)
        if model.experts and expert is not False
        else ()
    )
    if pin and pin.tensor:
        return [(pin.tensor, bool(expert) or (pin.tensor in by_number and pin.tensor not in whole))]
    if expert and not by_number:
        return [(1, True)]  # refused with its reason
    return [*((tp, False) for tp in whole), *((tp, True) for tp in by_number if tp not in whole)]
