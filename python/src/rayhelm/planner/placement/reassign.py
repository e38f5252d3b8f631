"""Place a few models of a placement again, all together: branch and bound over their candidates.

A local search stops where each better placement needs several models to change at once. Fleets of a few models are
covered completely, so their placement is optimal unless the search reaches its limit.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from random import Random

from rayhelm.planner.placement.assignment import Assignment, Value, is_better
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.choose import FLAGS, rank
from rayhelm.planner.placement.options import ModelOptions
from rayhelm.planner.placement.ranked_candidates import NEVER, Rank, RankedCandidates

__all__ = ["Reassignment"]

_MOST_MODELS = 8
"""Models that are placed again together."""
_MOST_NODES = 8_000
"""Candidates that are tried for one group of models."""
_MOST_NODES_IN_ALL = 24_000
_ROUNDING = 1e-4
"""Costs are rounded: those that differ by less can be equal."""
_MOST_TRIED = 300
"""Models for which a better candidate is looked for: on larger fleets the others stay where they are."""

_MOST_MIXED = 64
"""Models of a fleet up to which groups of mixed models are tried too: on larger fleets few of them get better."""
_MIXED_GROUPS = 100
_MOST_NODES_OF_MIXED = 400

Listed = list[tuple[Rank, Candidate]]


class Reassignment:
    """The search over groups of models, with one limit for all of them."""

    def __init__(
        self,
        assignment: Assignment,
        options: Mapping[str, ModelOptions],
        ranked: RankedCandidates,
        is_allowed: Callable[[str, Candidate], bool],
    ) -> None:
        """`is_allowed`: whether a candidate of a model is on the cluster of the models that belong to it."""
        self._assignment, self._options, self._ranked, self._is_allowed = assignment, options, ranked, is_allowed
        self._left = _MOST_NODES_IN_ALL
        self._tried: set[frozenset[tuple[str, int]]] = set()
        """Groups with the candidates that they had, which would be searched again without another result."""
        self._random = Random(0)
        """The same numbers for each plan."""

    def run(self, names: Sequence[str]) -> list[tuple[str, ...]]:
        """Place groups of models again; return the models of each group that changed. `names`: models that may have a
        better candidate, those that need it most first."""
        if not self._assignment.by_price and not self._assignment.value[0]:
            return []  # memory of GPUs is not worth as many moves as money
        unhappy = [name for name in names[:_MOST_TRIED] if self._has_better(name)]
        changed = []
        for name in unhappy:
            group = self._list_group(name)
            key = frozenset((each, id(self._assignment.candidates[each])) for each in group)
            if self._left <= 0 or len(group) < 2 or key in self._tried:
                continue
            self._tried.add(key)
            if moved := self._place_again(group, _MOST_NODES):
                changed.append(moved)
        return changed or self._place_mixed_groups(unhappy)

    def _place_mixed_groups(self, names: Sequence[str]) -> list[tuple[str, ...]]:
        """Place each of the models again with others of its pools and of those of its better candidates, chosen at
        random: the cheapest ones may not be those that have to move together."""
        comparable = self._list_comparable(self._assignment.candidates)
        if not names or not _MOST_MODELS < len(comparable) <= _MOST_MIXED:
            return []
        changed = []
        for number in range(_MIXED_GROUPS):
            name = names[number % len(names)]
            pools = self._iterate_pools(name, self._assignment.candidates[name])
            others = [each for pool in pools for each in self._list_comparable(self._assignment.get_members(pool))]
            others = [each for each in others if each != name]
            group = (name, *self._random.sample(others, min(len(others), _MOST_MODELS - 1)))
            if self._left > 0 and len(group) > 1 and (moved := self._place_again(group, _MOST_NODES_OF_MIXED)):
                changed.append(moved)
        return changed

    def _list_comparable(self, names: Iterable[str]) -> list[str]:
        """Return the models whose cost is part of the cost of the fleet."""
        return [each for each in names if self._options[each].by_price == self._assignment.by_price]

    def _has_better(self, name: str) -> bool:
        now = self._assignment.candidates[name]
        return now is None or any(True for _ in self._list_better(name, now))

    def _list_better(self, name: str, now: Candidate) -> Iterator[Candidate]:
        by_price = self._options[name].by_price
        current = rank(now, by_price)[: FLAGS + 1]
        for key, each in self._ranked.iterate(name, NEVER if any(current[:FLAGS]) else current[FLAGS]):
            if key[: FLAGS + 1] >= current:
                return
            yield each

    def _list_group(self, name: str) -> tuple[str, ...]:
        """Return a model with those on the pools of its better candidates, the cheapest ones first, then those on its
        own pool; all models of a small fleet."""
        now, state = self._assignment.candidates[name], self._assignment
        comparable = self._list_comparable(state.candidates)
        if len(comparable) <= _MOST_MODELS:
            return tuple(comparable)
        others = (
            each
            for pool in self._iterate_pools(name, now)
            for each in sorted(self._list_comparable(state.get_members(pool)), key=self._get_cost)
            if each != name
        )
        return (name, *islice(others, _MOST_MODELS - 1))

    def _iterate_pools(self, name: str, now: Candidate | None) -> Iterator[str]:
        """Yield each pool of the better candidates of a model, and then its own."""
        if now is None:
            yield from dict.fromkeys(each.split.inventory.name for _, each in self._ranked.iterate(name, NEVER))
            return
        seen = {own := now.split.inventory.name}
        for each in self._list_better(name, now):
            if (pool := each.split.inventory.name) not in seen:
                seen.add(pool)
                yield pool
        yield own

    def _get_cost(self, name: str) -> float:
        now = self._assignment.candidates[name]
        return rank(now, self._options[name].by_price)[FLAGS] if now else 0.0

    def _place_again(self, group: tuple[str, ...], most: int) -> tuple[str, ...]:
        """Place the models of a group where the fleet is best; return those that changed, none if it gets no better.
        `most`: candidates that are tried."""
        state, before = self._assignment, self._assignment.value
        now = {name: state.candidates[name] for name in group}
        order = sorted(group, key=lambda name: (-self._get_cost(name), name))
        state.begin()
        if not state.remove(group):
            state.undo()
            return ()
        search = _Branches(self, state, order, now, before)
        search.run(min(most, self._left))
        self._left -= search.nodes
        if not search.best or not all(state.add(name, each) for name, each in search.best.items()):
            state.undo()
            return ()
        state.commit()
        return tuple(name for name in group if state.candidates[name] is not now[name])

    def list_candidates(self, name: str, most: float) -> Listed:
        """Return the candidates that cost at most `most`, the best first."""
        return list(self._ranked.iterate(name, most))

    def find_least_cost(self, name: str, now: Candidate | None) -> float:
        """Return the cost of the cheapest candidate; 0 if the model can use a GPU that is paid for already."""
        if now is None or now.share < 1:
            return 0.0
        least, cheapest = next(self._ranked.iterate(name, rank(now, self._options[name].by_price)[FLAGS]))
        return least[FLAGS] if cheapest.share == 1 else 0.0

    def is_allowed(self, name: str, candidate: Candidate) -> bool:
        return self._is_allowed(name, candidate)


class _Branches:
    """Branch and bound over the candidates of some models, which have no GPUs at the start."""

    def __init__(
        self,
        around: Reassignment,
        state: Assignment,
        order: Sequence[str],
        now: Mapping[str, Candidate | None],
        before: Value,
    ) -> None:
        self.best: dict[str, Candidate] = {}
        """The best placement, if it is better than before."""
        self.nodes = 0
        self._around, self._state, self._order, self._now, self._before = around, state, order, now, before
        self._value, self._most = before, 0
        self._lists = self._list_all()
        self._in_order = {name for name in order if all(each.share == 1 for _, each in self._lists[name])}
        """Models whose candidates are in the order of their bounds: a fraction may cost less than its price."""
        least: list[Rank] = [(0.0,) * (FLAGS + 1)]
        for name in reversed(order):
            lowest = _find_least(self._lists[name])
            least.append(tuple(one + other for one, other in zip(least[-1], lowest, strict=True)))
        self._least = least[::-1]
        """By position: lower bound of faults and cost of the models from there on."""

    def run(self, most: int) -> None:
        """Search until `most` candidates were tried."""
        self._most = most
        if all(self._lists.values()):
            self._descend(0, {})

    def _list_all(self) -> dict[str, Listed]:
        """Return the candidates of each model that can be part of a better placement: without faults to remove, those
        that cost less than what the group leaves if each other model has its cheapest candidate."""
        if self._before[:-1] != (0.0,) * (FLAGS + 1):
            return {name: self._around.list_candidates(name, NEVER) for name in self._order}
        freed = self._before[-1] - self._state.value[-1]
        least = {name: self._around.find_least_cost(name, self._now[name]) for name in self._order}
        spare = freed - sum(least.values()) + _ROUNDING
        return {name: self._around.list_candidates(name, least[name] + spare) for name in self._order}

    def _descend(self, position: int, chosen: dict[str, Candidate]) -> None:
        if position == len(self._order):
            self._keep(chosen)
            return
        name, state = self._order[position], self._state
        floor = self._find_floor(position)
        for key, candidate in self._lists[name]:
            if self.nodes >= self._most:
                return
            if _bound(floor, key, candidate) >= self._value:
                if name in self._in_order:
                    return  # all others cost as much or more
                continue
            if not self._around.is_allowed(name, candidate):
                continue
            self.nodes += 1
            state.begin()
            if state.add(name, candidate):
                self._descend(position + 1, {**chosen, name: candidate})
            state.undo()

    def _find_floor(self, position: int) -> Value:
        """Return a lower bound of the value without the model at a position."""
        unplaced, *rest = self._state.value
        least = self._least[position + 1]
        return (unplaced - len(self._order) + position, *(one + other for one, other in zip(rest, least, strict=True)))

    def _keep(self, chosen: dict[str, Candidate]) -> None:
        value = self._state.value
        changed = [name for name in self._order if chosen[name] is not self._now[name]]
        by_price = self._state.by_price
        moved = sum(rank(now, by_price)[FLAGS] for name in changed if (now := self._now[name]))
        if value < self._value and is_better(value, self._before, moved):
            self.best, self._value = chosen, value


def _bound(floor: Value, key: Rank, candidate: Candidate) -> Value:
    """Return a lower bound of the value with a candidate. A fraction can use a GPU that is paid for already."""
    cost = (*key[:FLAGS], key[FLAGS] if candidate.share == 1 else 0.0)
    unplaced, *rest = floor
    return (unplaced, *(round(one + mine, 6) for one, mine in zip(rest, cost, strict=True)))


def _find_least(listed: Listed) -> Rank:
    """Return a lower bound of the faults and the cost of a model."""
    if not listed:
        return (0.0,) * (FLAGS + 1)
    costs = [key[FLAGS] if each.share == 1 else 0.0 for key, each in listed]
    return (*(min(key[index] for key, _ in listed) for index in range(FLAGS)), min(costs))
