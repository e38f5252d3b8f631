"""Improve a placement: models that were placed first may give up GPUs that others need more.

A deterministic local search. Its start is the placement of the models one by one. A model that has a better candidate
without room takes it, and the models in its way move. Where that finds no more, a few models at a time are placed again
together. A change is kept only if the whole fleet gets better, so fleets without scarce GPUs keep the first placement.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from rayhelm.planner.placement.assignment import Assignment, Value, is_better
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.choose import FLAGS, rank
from rayhelm.planner.placement.cost import compute_cost
from rayhelm.planner.placement.inventory import PoolInventory
from rayhelm.planner.placement.options import ModelOptions
from rayhelm.planner.placement.ranked_candidates import NEVER, RankedCandidates
from rayhelm.planner.placement.reassign import Reassignment

__all__ = ["Move", "improve"]

_ROUNDS = 8
_MOST_WORK = 60_000
"""Bounds the time on large fleets: each change that is tried counts as `_WORK_OF_TRIAL` and the models of its pool."""
_WORK_OF_TRIAL = 10
_MOST_BETTER = 12
"""Better candidates of a model that are tried, the best first."""
_MOST_IN_PAIRS = 5
_MOST_VICTIMS = 8
"""Models of a pool that may move for another one, those that lose least first."""
_MOST_CHAINED = 1
"""Models that move for a model that moves."""
_MOST_PUSHED = 4
"""Candidates that such a model tries."""


@dataclass(frozen=True)
class Move:
    """A change that was kept: its models have another candidate than before, the one that gained first."""

    models: tuple[str, ...]


def improve(
    assignment: Assignment,
    options: Mapping[str, ModelOptions],
    groups: Mapping[str, frozenset[str]],
    improvable: set[str],
) -> list[Move]:
    """Improve an assignment, and return the changes. `groups`: by model, the models that are on its cluster.
    `improvable`: models that may have a better candidate."""
    search = _Search(assignment, options, groups)
    moves: list[Move] = []
    for _ in range(_ROUNDS):
        found = [move for name in _sort_by_need(assignment, improvable) if (move := search.improve_model(name))]
        found += search.relocate_models(_sort_by_need(assignment, improvable))
        if not found:
            found = [Move(names) for names in search.reassign_models(_sort_by_need(assignment, improvable))]
        moves += found
        improvable = improvable | {name for move in found for name in move.models}
        if not found:
            break
    return moves


def _sort_by_need(assignment: Assignment, names: set[str]) -> list[str]:
    """Return models without room first, then the expensive ones."""

    def sort_key(name: str) -> tuple[bool, float, str]:
        candidate = assignment.candidates[name]
        return candidate is not None, -((candidate.price_per_hour or 0.0) if candidate else 0.0), name

    return sorted(names, key=sort_key)


class _Search:
    def __init__(
        self, assignment: Assignment, options: Mapping[str, ModelOptions], groups: Mapping[str, frozenset[str]]
    ) -> None:
        self._assignment, self._options, self._groups = assignment, options, groups
        self._ranked = RankedCandidates(options)
        self._moving: dict[str, Candidate | None] = {}
        """Candidates before the change that is tried."""
        self._work = 0
        self._reassignment = Reassignment(assignment, options, self._ranked, self._is_allowed)

    def improve_model(self, name: str) -> Move | None:
        """Give a model a better candidate if the fleet gets better by it."""
        if self._work >= _MOST_WORK or not self._is_comparable(name):
            return None
        for better in self._list_better(name):
            for victims in self._list_victims(name, better):
                if self._work >= _MOST_WORK:
                    return None
                pool = better.split.inventory.name
                self._work += _WORK_OF_TRIAL + self._assignment.count_members(pool)
                if self._try(name, better, victims):
                    return Move(tuple(self._moving))
        return None

    def relocate_models(self, improvable: Sequence[str]) -> list[Move]:
        """Move single models to more expensive GPUs where several others gain more together by their room."""
        interested: dict[str, dict[str, Candidate]] = {}
        for name in improvable:
            if self._work < _MOST_WORK and self._is_comparable(name) and self._assignment.candidates[name]:
                for better in self._list_better(name):
                    interested.setdefault(better.split.inventory.name, {}).setdefault(name, better)
        return [
            move
            for pool, others in sorted(interested.items())
            for name in self._assignment.get_members(pool)
            if len(others) > 1 and self._work < _MOST_WORK and (move := self._relocate(name, others))
        ]

    def reassign_models(self, improvable: Sequence[str]) -> list[tuple[str, ...]]:
        """Place a few models at a time again, all of them together; return those that changed."""
        return self._reassignment.run([name for name in improvable if self._is_comparable(name)])

    def _relocate(self, name: str, others: Mapping[str, Candidate]) -> Move | None:
        """Give the room of a model to others, and place it again. Undo it if the fleet is not better."""
        state, now = self._assignment, self._assignment.candidates[name]
        if now is None or now.share < 1 or not self._is_comparable(name):
            return None
        before, self._moving = state.value, {name: now}
        self._work += _WORK_OF_TRIAL * (1 + len(others))
        state.begin()
        if state.remove([name]):
            for other, better in others.items():
                if other != name and self._is_still_better(other, better):
                    self._move_over(other, better)
            moved = sum(self._get_cost_of(each, old) for each, old in self._moving.items())
            is_done = len(self._moving) > 1 and self._place_again(name, before, 0)
            if is_done and is_better(state.value, before, moved):
                state.commit()
                return Move(tuple(self._moving))
        state.undo()
        return None

    def _is_still_better(self, name: str, better: Candidate) -> bool:
        now, by_price = self._assignment.candidates[name], self._options[name].by_price
        is_better = now is not None and rank(better, by_price)[: FLAGS + 1] < rank(now, by_price)[: FLAGS + 1]
        return is_better and self._is_allowed(name, better)

    def _move_over(self, name: str, better: Candidate) -> None:
        """Move a model to a candidate if that has room."""
        state = self._assignment
        now = state.candidates[name]
        state.begin()
        if state.remove([name]) and state.add(name, better):
            self._moving[name] = now
            state.commit()
        else:
            state.undo()

    def _try(self, name: str, better: Candidate, victims: tuple[str, ...]) -> bool:
        """Place a model in the room of others, and those where they cost least. Undo it if the fleet is not better."""
        state, names = self._assignment, (name, *victims)
        self._moving = {each: state.candidates[each] for each in names}
        before, moved = state.value, sum(self._get_cost_of(each, now) for each, now in self._moving.items())
        state.begin()
        is_done = (
            state.remove(names)
            and state.add(name, better)
            and all(self._place_again(victim, before, _MOST_CHAINED) for victim in victims)
            and is_better(state.value, before, moved)
        )
        if is_done:
            state.commit()
        else:
            state.undo()
        return is_done

    def _place_again(self, victim: str, before: Value, chained: int) -> bool:
        """Place a model on the best candidate with room; False if none costs less than the change saves. `chained`: how
        many more models may move for it, one after the other."""
        state, now = self._assignment, self._moving[victim]
        is_about_cost = None not in self._moving.values() and state.value[1:-1] == before[1:-1]
        spare = before[-1] - state.value[-1] if is_about_cost else NEVER
        most, cost = NEVER if now is None or now.share < 1 else spare, self._get_cost_of(victim, now)
        for _, candidate in self._ranked.iterate(victim, most, cost):
            if self._is_allowed(victim, candidate) and state.add(victim, candidate):
                return True
        if not chained or most == NEVER:
            return False
        found = self._ranked.iterate(victim, most, cost)
        allowed = ((key[FLAGS], each) for key, each in found if self._is_allowed(victim, each))
        return any(
            self._push(victim, candidate, spare - price, before, chained)
            for price, candidate in islice(allowed, _MOST_PUSHED)
        )

    def _push(self, victim: str, candidate: Candidate, spare: float, before: Value, chained: int) -> bool:
        """Place a model where another one moves on, if that one loses less than `spare`."""
        state, inventory = self._assignment, candidate.split.inventory
        members = [each for each in state.get_members(inventory.name) if each not in self._moving]
        losses = {each: self._estimate_loss(each, inventory, spare) for each in members if self._is_comparable(each)}
        for other in sorted((each for each in losses if losses[each] < spare), key=lambda each: losses[each]):
            if self._work >= _MOST_WORK:
                return False
            self._work += _WORK_OF_TRIAL + len(members)
            state.begin()
            self._moving[other] = state.candidates[other]
            is_done = state.remove([other]) and state.add(victim, candidate)
            if is_done and self._place_again(other, before, chained - 1):
                state.commit()
                return True
            state.undo()
            del self._moving[other]
        return False

    def _list_better(self, name: str) -> list[Candidate]:
        """Return candidates that rank before the current one, the best first."""
        now, by_price = self._assignment.candidates[name], self._options[name].by_price
        current = rank(now, by_price)[: FLAGS + 1] if now else None
        most = _limit_cost(now, by_price=by_price)
        found: list[Candidate] = []
        for key, each in self._ranked.iterate(name, most):
            is_better = now is None or current is None or key[: FLAGS + 1] < current or _may_join(now, each)
            if is_better and self._is_allowed(name, each):
                found.append(each)
            if len(found) == _MOST_BETTER:
                break
        return found

    def _list_victims(self, name: str, better: Candidate) -> Iterator[tuple[str, ...]]:
        """Yield sets of models of the wanted pool that may move for a model: none, one, two, then more. Those that lose
        more than the model gains are left out."""
        yield ()
        inventory, gain = better.split.inventory, self._estimate_gain(name, better)
        losses = {
            each: loss
            for each in self._assignment.get_members(inventory.name)
            if each != name
            and self._is_comparable(each)
            and (loss := self._estimate_loss(each, inventory, gain)) < gain
        }
        others = sorted(losses, key=lambda each: losses[each])[:_MOST_VICTIMS]
        sets = [
            *((each,) for each in others),
            *combinations(others[:_MOST_IN_PAIRS], 2),
            *(tuple(others[:count]) for count in range(3, len(others) + 1)),
        ]
        yield from (victims for victims in sets if sum(losses[each] for each in victims) < gain)

    def _estimate_gain(self, name: str, better: Candidate) -> float:
        """Return what a model saves with a candidate; infinite if more than the cost gets better."""
        now, by_price = self._assignment.candidates[name], self._options[name].by_price
        if now is None or now.share < 1:
            return NEVER
        before, after = rank(now, by_price), rank(better, by_price)
        return before[FLAGS] - after[FLAGS] if before[:FLAGS] == after[:FLAGS] else NEVER

    def _estimate_loss(self, name: str, inventory: PoolInventory, most: float) -> float:
        """Return how much a model loses at least if it leaves a pool, without regard to room; infinite if that is more
        than `most`."""
        now = self._assignment.candidates[name]
        cost = self._get_cost_of(name, now)
        if now is not None and now.share < 1:
            return 0.0
        for key, each in self._ranked.iterate(name, cost + most, cost):
            if each.split.inventory is not inventory and self._is_allowed(name, each):
                return max(0.0, key[FLAGS] - cost)
        return NEVER

    def _is_comparable(self, name: str) -> bool:
        """Return whether the cost of a model is part of the cost of the fleet, and not of another kind."""
        return self._options[name].by_price == self._assignment.by_price

    def _is_allowed(self, name: str, candidate: Candidate) -> bool:
        """Return whether a candidate is on the cluster of the models that belong to this one."""
        others = (self._assignment.candidates[each] for each in self._groups[name] if each != name)
        cluster = candidate.split.inventory.pool.cluster
        return all(other is None or other.split.inventory.pool.cluster == cluster for other in others)

    def _get_cost_of(self, name: str, candidate: Candidate | None) -> float:
        return rank(candidate, self._options[name].by_price)[FLAGS] if candidate else 0.0


def _limit_cost(now: Candidate | None, *, by_price: bool) -> float:
    """Return what a better candidate may cost: as much as now; for a fraction, as much as its whole GPU."""
    if now is None:
        return NEVER
    if now.share == 1:
        return rank(now, by_price)[FLAGS]
    return now.replicas * compute_cost(now.split.price_per_hour, now.split.memory_gib, by_price=by_price)


def _may_join(now: Candidate, other: Candidate) -> bool:
    """Return whether a model on a fraction could take the rest of a GPU that its service holds on another pool."""
    return now.share < 1 and other.share < 1 and other.split.inventory is not now.split.inventory
