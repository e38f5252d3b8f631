"""Chooses among candidates. One order for all: keep the objective, start with certainty, cost little, stay simple."""

from collections.abc import Sequence
from dataclasses import dataclass

from rayhelm.planner.candidates import Candidate
from rayhelm.planner.placement import room_for

__all__ = ["Choice", "choose"]


@dataclass(frozen=True)
class Choice:
    """What was chosen, and what it was compared with."""

    candidate: Candidate
    by_price: bool
    """Compared by price; by memory held where some price is unknown."""
    runner_up: Candidate | None
    cramped: tuple[Candidate, ...]
    """Better ones for which the pool has no room left."""


def choose(found: Sequence[Candidate]) -> Choice | None:
    """The best candidate for which there is room, or None."""
    if not found:
        return None
    by_price = all(candidate.price_per_hour is not None for candidate in found)
    ranked = sorted(found, key=lambda candidate: _rank(candidate, by_price))
    cramped: list[Candidate] = []
    for index, candidate in enumerate(ranked):
        if room_for(candidate) >= candidate.replicas:
            other = next((later for later in ranked[index + 1 :] if later.split != candidate.split), None)
            return Choice(candidate, by_price, other, tuple(cramped))
        cramped.append(candidate)
    return None


def _rank(candidate: Candidate, by_price: bool) -> tuple[float, ...]:
    split, capacity = candidate.split, candidate.capacity
    memory = split.memory_gib * candidate.share * candidate.replicas
    cost = candidate.price_per_hour if by_price else memory
    return (
        not capacity.meets_slo,
        candidate.tight,
        candidate.context < candidate.wish.context,
        split.gpu.engine != "vllm",
        round(cost or 0.0, 6),
        split.nodes,
        memory,
        split.pp,
        capacity.tpot_s or 0.0,
    )
