"""Choose among placement candidates: first by objective, then certainty of the start, cost, and simplicity."""

from bisect import bisect_right, insort
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
    cramped: Candidate | None
    """The best candidate that ranks higher but needs more GPUs than are free."""
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
        self._first: _Ranked | None = None
        self._second: _Ranked | None = None

    def add(self, candidate: Candidate) -> None:
        ranked = _Ranked(rank(candidate, self._by_price), candidate.split.inventory.name, len(self.found))
        self.found.append(candidate)
        insort(self._ranked, ranked)
        first = self._first
        if first is None or ranked < first:
            if count_possible_replicas(candidate) >= candidate.replicas:
                self._first, self._second = ranked, self._find_second(ranked)
        elif (self._second is None or ranked < self._second) and self._is_other_split(ranked, first):
            self._second = ranked

    def is_decided(self, cost: float) -> bool:
        """Return whether candidates that cost at least `cost` change neither the choice nor the runner-up."""
        first, second = self._first, self._second
        return bool(first and second and first.is_decided(cost) and second.is_decided(cost))

    def choose(self) -> Choice | None:
        if self._first is None:
            return None
        candidate = self.found[self._first.number]
        other = self.found[self._second.number] if self._second else None
        highest = self._ranked[0]
        cramped = self.found[highest.number] if highest < self._first else None
        return Choice(candidate, other, _find_advantage(candidate, other, self._by_price), cramped)

    def _find_second(self, first: _Ranked) -> _Ranked | None:
        later = self._ranked[bisect_right(self._ranked, first) :]
        return next((each for each in later if self._is_other_split(each, first)), None)

    def _is_other_split(self, one: _Ranked, other: _Ranked) -> bool:
        return self.found[one.number].split != self.found[other.number].split


def rank(candidate: Candidate, by_price: bool) -> tuple[float, ...]:
    """Return the values of the criteria, the first one first. The lowest tuple is the best candidate."""
    cost = round(candidate.get_cost(by_price), 6 if by_price else 3)
    split = candidate.split
    last = (split.nodes, round(candidate.memory_gib, 3), split.shape.pp, candidate.capacity.tpot_s or 0.0)
    return (*candidate.faults, cost, *last)


def _list_criteria(candidate: Candidate, other: Candidate, by_price: bool) -> Iterator[tuple[str, float, float]]:
    """Yield the criteria in order, each with its text for the plan; a smaller value is better."""
    texts = (
        "meets the SLO by the estimate",
        "starts with certainty; the second choice is tight",
        "has the requested context",
        "official vLLM builds run on it",
        "keeps CUDA graphs",
        _describe_cost(candidate, other),
        "uses fewer hosts per replica",
        "uses less GPU memory at the same price",
        "has fewer pipeline stages",
        "decodes faster",
    )
    yield from zip(texts, rank(candidate, by_price), rank(other, by_price), strict=True)


def _describe_cost(candidate: Candidate, other: Candidate) -> str:
    if candidate.price_per_hour is None:
        return "least GPU memory (some prices are unknown)"
    return "lowest price" if other.price_per_hour is not None else "the price of the second choice is unknown"


def _find_advantage(candidate: Candidate, other: Candidate | None, by_price: bool) -> str:
    if other is None:
        return ""
    better = (words for words, mine, theirs in _list_criteria(candidate, other, by_price) if mine < theirs)
    return next(better, "equal in all criteria, and first by name")
