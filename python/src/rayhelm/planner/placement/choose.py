"""Choose among placement candidates: first by objective, then certainty of the start, cost, and simplicity."""

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from rayhelm.planner.placement.allocate import count_possible_replicas
from rayhelm.planner.placement.candidates import Candidate, RejectedSplit
from rayhelm.planner.placement.options import ModelOptions

__all__ = ["FLAGS", "Choice", "Comparison", "choose", "rank"]

FLAGS = 5
"""Criteria before the cost. All of them are 0 for a candidate without a fault."""
_ROUNDING = 1e-3
"""Costs that differ by less can be equal after rounding."""


@dataclass(frozen=True)
class Choice:
    """The chosen candidate, and the candidates that it was compared with."""

    candidate: Candidate
    runner_up: Candidate | None
    advantage: str
    """Why it ranks before the runner-up."""
    cramped: tuple[Candidate, ...]
    """Candidates that rank higher but need more GPUs than are free."""
    missing_slo: tuple[Candidate, ...] = ()
    """Candidates that were not compared, because even a request alone misses an objective on them."""
    moved: str = ""
    """Why it is not the best one that was left when the model was placed; empty if it is."""


@dataclass(frozen=True)
class Comparison:
    """What was found for a model, by name of the pool."""

    choice: Choice | None
    """None if no candidate has room."""
    reachable: tuple[Candidate, ...]
    """Candidates that can meet the objectives."""
    missing_slo: tuple[Candidate, ...]
    refused: tuple[RejectedSplit, ...]


class _Ranked(NamedTuple):
    rank: tuple[float, ...]
    pool: str
    number: int
    """Of the candidate, in the order in which they were found: the last criterion, so that equal ones keep it."""

    def is_decided(self, cost: float) -> bool:
        """Return whether no candidate that costs at least `cost` ranks before this one."""
        return not any(self.rank[:FLAGS]) and self.rank[FLAGS] < cost - _ROUNDING


def choose(options: ModelOptions) -> Comparison:
    """Return the best candidate that the free GPUs hold, and what it was compared with."""
    compared = _Candidates(options.by_price)
    missing: list[Candidate] = []
    refused: list[RejectedSplit] = []
    objective = options.model_spec.declared.slo
    for found in options.walk(compared.is_decided):
        if isinstance(found, RejectedSplit):
            refused.append(found)
        elif found.capacity.misses_alone(objective):
            missing.append(found)
        else:
            compared.add(found)
    choice = compared.choose()
    return Comparison(
        choice=replace(choice, missing_slo=tuple(missing)) if choice else None,
        reachable=tuple(sorted(compared.found, key=_get_pool)),
        missing_slo=tuple(sorted(missing, key=_get_pool)),
        refused=tuple(sorted(refused, key=_get_pool)),
    )


def _get_pool(found: Candidate | RejectedSplit) -> str:
    return found.split.inventory.name


class _Candidates:
    """The candidates that were found so far, ranked."""

    def __init__(self, by_price: bool) -> None:
        self.found: list[Candidate] = []
        self._by_price = by_price
        self._ranked: list[_Ranked] = []
        self._has_room: list[bool] = []
        self._first: _Ranked | None = None
        self._second: _Ranked | None = None

    def add(self, candidate: Candidate) -> None:
        ranked = _Ranked(rank(candidate, self._by_price), candidate.split.inventory.name, len(self.found))
        self.found.append(candidate)
        self._has_room.append(count_possible_replicas(candidate) >= candidate.replicas)
        insort(self._ranked, ranked)
        if self._second is None or ranked < self._second:
            self._find_best()

    def is_decided(self, cost: float) -> bool:
        """Return whether candidates that cost at least `cost` change neither the choice nor the runner-up."""
        first, second = self._first, self._second
        return bool(first and second and first.is_decided(cost) and second.is_decided(cost))

    def choose(self) -> Choice | None:
        if self._first is None:
            return None
        candidate = self.found[self._first.number]
        other = self.found[self._second.number] if self._second else None
        cramped = tuple(self.found[each.number] for each in self._ranked if each < self._first)
        return Choice(candidate, other, _find_advantage(candidate, other, self._by_price), cramped)

    def _find_best(self) -> None:
        self._first = next((each for each in self._ranked if self._has_room[each.number]), None)
        first = self._first
        if first is None:
            return
        split = self.found[first.number].split
        later = (each for each in self._ranked if each > first)
        self._second = next((each for each in later if self.found[each.number].split != split), None)


def rank(candidate: Candidate, by_price: bool) -> tuple[float, ...]:
    """Return the values of the criteria, the first one first. The lowest tuple is the best candidate."""
    cost = round((candidate.price_per_hour or 0.0) if by_price else candidate.memory_gib, 6 if by_price else 3)
    split = candidate.split
    last = (split.nodes, round(candidate.memory_gib, 3), split.shape.pp, candidate.capacity.tpot_s or 0.0)
    return (*candidate.faults, cost, *last)


def _list_criteria(candidate: Candidate, by_price: bool) -> Iterator[tuple[str, float]]:
    """Yield the criteria in order, each with its text for the plan; a smaller value is better."""
    texts = (
        "meets the SLO by the estimate",
        "starts with certainty; the second choice is tight",
        "has the requested context",
        "official vLLM builds run on it",
        "keeps CUDA graphs",
        "lowest price" if by_price else "least GPU memory (some prices are unknown)",
        "uses fewer hosts per replica",
        "uses less GPU memory at the same price",
        "has fewer pipeline stages",
        "decodes faster",
    )
    yield from zip(texts, rank(candidate, by_price), strict=True)


def _find_advantage(candidate: Candidate, other: Candidate | None, by_price: bool) -> str:
    if other is None:
        return ""
    pairs = zip(_list_criteria(candidate, by_price), _list_criteria(other, by_price), strict=True)
    return next(
        (words for (words, mine), (_, theirs) in pairs if mine < theirs), "equal in all criteria, and first by name"
    )
