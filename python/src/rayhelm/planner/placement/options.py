"""The splits of a model over all its pools, evaluated on demand: those with the lowest possible cost first.

Pools whose hosts and network are alike have the same splits, so a split is evaluated once for all of them.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rayhelm.facts.gpu import GpuKind
from rayhelm.planner.placement.candidates import Candidate, RejectedSplit, evaluate_split, find_least_share
from rayhelm.planner.placement.cost import compute_cost
from rayhelm.planner.placement.inventory import PoolInventory
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.placement.model_splits import MOST_HOSTS, ModelSplit, count_pinned_stages, list_splits
from rayhelm.planner.placement.resolve import ResolvedMemory

__all__ = ["ModelOptions", "PoolSplits"]

Evaluated = tuple[Candidate | RejectedSplit, ...]


@dataclass(frozen=True)
class _PoolSplit:
    """A split on one pool that is not evaluated yet."""

    cost: float
    """Lowest cost of one replica on whole GPUs of this split and of those after it in the pool."""
    inventory: PoolInventory
    alike: Hashable
    """Equal for splits that differ only in the pool."""
    representative: ModelSplit
    """The same split on the first pool of its kind."""

    @property
    def split(self) -> ModelSplit:
        return _on_pool(self.representative, self.inventory)


class PoolSplits:
    """Lists the splits of models over the pools of a fleet. Models with the same checkpoint and pins have the same."""

    def __init__(self, inventories: Mapping[str, PoolInventory]) -> None:
        self._inventories = inventories
        self.memory = ResolvedMemory()
        numbers: dict[GpuKind, int] = {}
        self._gpu_number = {
            id(host.gpu): numbers.setdefault(host.gpu, len(numbers))
            for inventory in inventories.values()
            for host in inventory.hosts
        }
        self._lists: dict[Hashable, list[_PoolSplit]] = {}
        self._splits: dict[Hashable, list[ModelSplit]] = {}

    def list_pools(self, model_spec: ResolvedModelSpec, cluster: str | None) -> list[PoolInventory]:
        """Return the pools that the pins of the model and the cluster of its service allow."""
        wanted = model_spec.declared.pool
        named = self._inventories.items() if wanted is None else [(wanted, self._inventories[wanted])]
        return [inventory for _, inventory in named if cluster in (None, inventory.pool.cluster)]

    def list_sorted(self, model_spec: ResolvedModelSpec, cluster: str | None, by_price: bool) -> list[_PoolSplit]:
        """Return the splits of all pools of the model, sorted by cost. Without `by_price` the cost is memory, GiB."""
        spec = model_spec.declared
        key = (id(model_spec.model), spec.pool, spec.parallelism, cluster, by_price)
        if key not in self._lists:
            pools = self.list_pools(model_spec, cluster)
            found = [each for pool in pools for each in self._list_on_pool(model_spec, pool, by_price)]
            self._lists[key] = sorted(found, key=lambda each: each.cost)
        return self._lists[key]

    def _list_on_pool(
        self, model_spec: ResolvedModelSpec, inventory: PoolInventory, by_price: bool
    ) -> Iterator[_PoolSplit]:
        """Yield the splits of a pool in the order of `list_splits`. The cost of each is at most that of the next one,
        so that sorting by cost keeps their order."""
        kind = self._describe_kind(model_spec, inventory)
        key = (id(model_spec.model), model_spec.declared.parallelism, kind)
        if key not in self._splits:
            parallelism = model_spec.declared.parallelism
            self._splits[key] = list(list_splits(model_spec.model, inventory, model_spec.engine, parallelism))
        least = float("inf")
        found: list[_PoolSplit] = []
        for index, representative in reversed(list(enumerate(self._splits[key]))):
            here = _on_pool(representative, inventory)
            price = here.price_per_hour
            least = min(least, compute_cost(price, here.memory_gib, by_price=by_price))
            found.append(_PoolSplit(least, inventory, (kind, index), representative))
        yield from reversed(found)

    def _describe_kind(self, model_spec: ResolvedModelSpec, inventory: PoolInventory) -> Hashable:
        """Return what the splits of a pool and their capacity depend on, besides the model."""
        if not inventory.is_uniform:
            return inventory.name
        hosts = inventory.hosts
        gpus = tuple(dict.fromkeys(self._gpu_number[id(host.gpu)] for host in hosts))
        count = len(hosts) if count_pinned_stages(model_spec.declared.parallelism) else min(len(hosts), MOST_HOSTS)
        return gpus, hosts[0].gpu_count, count, inventory.network, inventory.partitioning is not None


class ModelOptions:
    """The candidates of one model, evaluated on demand."""

    def __init__(self, model_spec: ResolvedModelSpec, splits: PoolSplits, cluster: str | None) -> None:
        """`cluster`: the one that the model has to be on; None for any."""
        self.model_spec, self._splits, self._cluster = model_spec, splits, cluster
        self.pools: Sequence[PoolInventory] = splits.list_pools(model_spec, cluster)
        self._factor = find_least_share(model_spec) * model_spec.replicas(1)
        self._evaluated: dict[Hashable, Evaluated] = {}
        self._has_measured_network = any(pool.network.basis for pool in self.pools)
        self.by_price = any(pool.has_price for pool in self.pools)

    def walk(self, is_decided: Callable[[float], bool]) -> Iterator[Candidate | RejectedSplit]:
        """Yield candidates and refused splits in the order of their lowest possible cost: USD per hour, or GiB without
        `by_price`. Ends once `is_decided` holds for that cost; splits over hosts with a measured network still follow,
        because the plan says what the measurement decided.

        Once a pipeline with room fits with certainty, longer ones of the same TP on the pool are left out, except on
        one host where one of their replicas costs less than all replicas of the shorter one."""
        enough: dict[tuple[str, int], tuple[int, float]] = {}
        for each in self._splits.list_sorted(self.model_spec, self._cluster, self.by_price):
            split = each.representative
            where, stages = (each.inventory.name, split.shape.tp), split.shape.pp
            if is_decided(each.cost * self._factor):
                if not self._has_measured_network:
                    return
                if split.nodes == 1 or not each.inventory.network.basis:
                    continue
            pp, cost = enough.get(where, (stages, 0.0))
            if stages > pp and (split.nodes > 1 or self._find_cost(split, each) >= cost):
                continue
            found = self._evaluated.get(each.alike, ())
            if not found or not all(self._is_decided_on(one, each.inventory, is_decided) for one in found):
                found = self._evaluate(each)
                yield from found
            first = found[0]
            if isinstance(first, Candidate) and _is_safe(first) and first.split.has_room_in(each.inventory):
                cost = self._find_cost(split, each) * first.replicas
                enough[where] = min(enough.get(where, (stages, cost)), (stages, cost), key=lambda one: one[1])

    def _find_cost(self, split: ModelSplit, each: _PoolSplit) -> float:
        """Return the cost of one replica of a split on whole GPUs of a pool."""
        return compute_cost(split.get_price_in(each.inventory), split.memory_gib, by_price=self.by_price)

    def _is_decided_on(
        self, found: Candidate | RejectedSplit, inventory: PoolInventory, is_decided: Callable[[float], bool]
    ) -> bool:
        """Return whether a candidate costs too much on another pool of its kind to be compared."""
        if isinstance(found, RejectedSplit) or found.capacity.misses_alone(self.model_spec.declared.slo):
            return False
        price = found.split.get_price_in(inventory)
        price = None if price is None else price * found.share * found.replicas
        return is_decided(compute_cost(price, found.memory_gib, by_price=self.by_price))

    def list_up_to(self, cost: float) -> Iterator[Candidate]:
        """Yield the candidates that can cost at most `cost`, regardless of free GPUs."""
        for least, found in self.list_with_least_cost():
            if least > cost:
                return
            yield found

    def list_with_least_cost(self) -> Iterator[tuple[float, Candidate]]:
        """Yield all candidates in the order of their lowest possible cost, which comes with them."""
        for each in self._splits.list_sorted(self.model_spec, self._cluster, self.by_price):
            for found in self._evaluate(each):
                if isinstance(found, Candidate) and not found.capacity.misses_alone(self.model_spec.declared.slo):
                    yield each.cost * self._factor, found

    def _evaluate(self, each: _PoolSplit) -> Evaluated:
        if each.alike not in self._evaluated:
            self._evaluated[each.alike] = evaluate_split(self.model_spec, each.split, self._splits.memory)
        return tuple(_move(found, each.inventory) for found in self._evaluated[each.alike])


def _is_safe(found: Candidate) -> bool:
    _, is_tight, has_shorter_context, _, is_eager = found.faults
    return not (is_tight or is_eager or has_shorter_context)


def _move(found: Candidate | RejectedSplit, inventory: PoolInventory) -> Candidate | RejectedSplit:
    """Return the same split on another pool of its kind."""
    if found.split.inventory is inventory:
        return found
    if isinstance(found, Candidate):
        return found.on_pool(inventory)
    return replace(found, split=_on_pool(found.split, inventory))


def _on_pool(split: ModelSplit, inventory: PoolInventory) -> ModelSplit:
    return split if split.inventory is inventory else split.on_pool(inventory)
