"""Candidates assigned to models, the GPUs that they take, and what that costs. Changes can be undone."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rayhelm.planner.placement.allocate import allocate, count_possible_replicas
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.choose import FLAGS, rank
from rayhelm.planner.placement.cost import compute_cost
from rayhelm.planner.placement.inventory import HostInventory, PoolInventory
from rayhelm.planner.pool_use import GpuPart

__all__ = ["Assignment", "Value", "is_better"]

Value = tuple[float, ...]
"""Models without room, models with each fault of `choose`, and the cost of all GPUs that pods hold."""

Allocated = list[tuple[list[float], list[tuple[GpuPart, ...]], int]]
"""Of each host of a pool: free fractions and parts of its GPUs, and the number of free GPUs."""

_LEAST_GAIN = 0.01
"""Part of the cost of the models that move which a change must save: a smaller gain is not worth other pools."""
UNPLACED = (1.0,) + (0.0,) * FLAGS


@dataclass
class _Undo:
    """What to restore."""

    candidates: dict[str, Candidate | None] = field(default_factory=dict)
    pools: dict[str, Allocated] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)


class Assignment:
    """The candidates of all models, and the GPUs of the pools that they take."""

    def __init__(
        self,
        inventories: Mapping[str, PoolInventory],
        chosen: Mapping[str, Candidate | None],
        by_price: bool,
    ) -> None:
        """`chosen`: candidate of each model in the order of placement, already allocated; None without room.
        `by_price`: whether the cost is USD per hour; otherwise it is memory, GiB."""
        self._inventories, self.by_price = inventories, by_price
        self.candidates = dict(chosen)
        self._unit_costs = {name: self._list_unit_costs(inventory) for name, inventory in inventories.items()}
        self._position = {name: index for index, name in enumerate(chosen)}
        self._members: dict[str, set[str]] = {name: set() for name in inventories}
        for name, candidate in chosen.items():
            if candidate:
                self._members[candidate.split.inventory.name].add(name)
        self._faults = [0.0] * len(UNPLACED)
        for candidate in chosen.values():
            self._count(candidate, 1)
        self._costs = {name: self._compute_cost(inventory) for name, inventory in inventories.items()}
        self._total = sum(self._costs.values())
        self._changes: list[_Undo] = []
        self._allocated = {name: _copy_hosts(inventory) for name, inventory in inventories.items()}

    @property
    def value(self) -> Value:
        """What is compared; a smaller one is better."""
        return (*self._faults, round(self._total, 6))

    def get_members(self, pool: str) -> list[str]:
        """Return the models on a pool, in the order of placement."""
        return sorted(self._members[pool], key=lambda name: self._position[name])

    def count_members(self, pool: str) -> int:
        return len(self._members[pool])

    def begin(self) -> None:
        """Begin a change that `undo` takes back; changes within it can be taken back alone."""
        self._changes.append(_Undo())

    def commit(self) -> None:
        """Keep the last change; a change around it still takes it back."""
        done = self._changes.pop()
        if not self._changes:
            return
        around = self._changes[-1]
        for mine, theirs in zip(vars(done).values(), vars(around).values(), strict=True):
            for key, value in mine.items():
                theirs.setdefault(key, value)

    def undo(self) -> None:
        """Take the last change back."""
        undone = self._changes.pop()
        for name, candidate in undone.candidates.items():
            self._set(name, candidate)
        for pool, saved in undone.pools.items():
            _restore_hosts(self._inventories[pool], saved)
        for pool, cost in undone.costs.items():
            self._total += cost - self._costs[pool]
            self._costs[pool] = cost

    def restore(self) -> None:
        """Allocate the GPUs as they were at first, after the last change."""
        for pool, saved in self._allocated.items():
            _restore_hosts(self._inventories[pool], saved)

    def remove(self, names: Iterable[str]) -> bool:
        """Take the GPUs of models away, and pack the others again; False if that fails, which `undo` takes back."""
        pools = set()
        for name in names:
            if candidate := self.candidates[name]:
                self._save(name, candidate.split.inventory.name)
                pools.add(candidate.split.inventory.name)
                self._set(name, None)
        return all(self._pack(pool) for pool in sorted(pools))

    def add(self, name: str, candidate: Candidate) -> bool:
        """Give a model without GPUs those of a candidate; False, without a change, if the pool has no room."""
        pool = candidate.split.inventory.name
        if not self.has_room(candidate):
            return False
        self._save(name, pool)
        self._set(name, candidate)
        allocate(candidate)
        self._update_cost(pool)
        return True

    def has_room(self, candidate: Candidate) -> bool:
        """Return whether the free GPUs hold a candidate."""
        return count_possible_replicas(candidate) >= candidate.replicas

    def _pack(self, pool: str) -> bool:
        """Allocate all models of a pool again, the largest parts of a host first."""
        for host in self._inventories[pool].hosts:
            host.clear()
        for name in sorted(self._members[pool], key=self._sort_for_packing):
            candidate = self._get(name)
            if not self.has_room(candidate):
                return False
            allocate(candidate)
        self._update_cost(pool)
        return True

    def _sort_for_packing(self, name: str) -> tuple[float, ...]:
        candidate = self._get(name)
        split = candidate.split
        return -split.nodes, -split.gpus_per_node, -candidate.share, self._position[name]

    def _get(self, name: str) -> Candidate:
        candidate = self.candidates[name]
        assert candidate is not None
        return candidate

    def _save(self, name: str, pool: str) -> None:
        change = self._changes[-1]
        change.candidates.setdefault(name, self.candidates[name])
        if pool not in change.pools:
            change.pools[pool] = _copy_hosts(self._inventories[pool])
            change.costs[pool] = self._costs[pool]

    def _set(self, name: str, candidate: Candidate | None) -> None:
        before = self.candidates[name]
        self._count(before, -1)
        self._count(candidate, 1)
        if before:
            self._members[before.split.inventory.name].discard(name)
        if candidate:
            self._members[candidate.split.inventory.name].add(name)
        self.candidates[name] = candidate

    def _count(self, candidate: Candidate | None, sign: int) -> None:
        faults = (0.0, *rank(candidate, self.by_price)[:FLAGS]) if candidate else UNPLACED
        for index, value in enumerate(faults):
            self._faults[index] += sign * value

    def _update_cost(self, pool: str) -> None:
        cost = self._compute_cost(self._inventories[pool])
        self._total += cost - self._costs[pool]
        self._costs[pool] = cost

    def _compute_cost(self, inventory: PoolInventory) -> float:
        """Return the cost of the GPUs of which a part is taken: a pod holds whole devices."""
        costs = self._unit_costs[inventory.name]
        return sum((host.gpu_count - host.free_gpu_count) * costs[host.gpu.id] for host in inventory.hosts)

    def _list_unit_costs(self, inventory: PoolInventory) -> dict[str, float]:
        return {host.gpu.id: self._find_unit_cost(host, inventory) for host in inventory.hosts}

    def _find_unit_cost(self, host: HostInventory, inventory: PoolInventory) -> float:
        """Return the cost of one GPU of a host, or of one part of a GPU."""
        price = inventory.host_price(host)
        price = None if price is None else price * host.gpu.part
        return compute_cost(price, host.gpu.usable_gib or 0.0, by_price=self.by_price)


def _copy_hosts(inventory: PoolInventory) -> Allocated:
    return [(host.free[:], host.parts[:], host.free_gpu_count) for host in inventory.hosts]


def _restore_hosts(inventory: PoolInventory, saved: Allocated) -> None:
    for host, (free, parts, count) in zip(inventory.hosts, saved, strict=True):
        host.free, host.parts, host.free_gpu_count = free[:], parts[:], count


def is_better(after: Value, before: Value, moved: float) -> bool:
    """Return whether models get room, lose a fault, or save enough."""
    if after[:-1] != before[:-1]:
        return after[:-1] < before[:-1]
    return before[-1] - after[-1] > max(_LEAST_GAIN * moved, 1e-6)
