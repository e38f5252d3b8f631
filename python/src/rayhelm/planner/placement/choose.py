"""Chooses among candidates. One order for all: keep the objective, start with certainty, cost little, stay simple."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rayhelm.planner.placement.allocate import count_possible_replicas
from rayhelm.planner.placement.candidates import Candidate

__all__ = ["Choice", "choose"]


@dataclass(frozen=True)
class Choice:
    """What was chosen, and what it was compared with."""

    candidate: Candidate
    runner_up: Candidate | None
    advantage: str
    """What it has over the runner-up."""
    cramped: tuple[Candidate, ...]
    """Better ones for which the pool has no room left."""


def choose(found: Sequence[Candidate]) -> Choice | None:
    """The best candidate for which there is room, or None."""
    by_price = all(candidate.price_per_hour is not None for candidate in found)
    ranked = sorted(found, key=lambda candidate: [value for _, value in _rank(candidate, by_price)])
    cramped: list[Candidate] = []
    for index, candidate in enumerate(ranked):
        if count_possible_replicas(candidate) >= candidate.replicas:
            other = next((later for later in ranked[index + 1 :] if later.split != candidate.split), None)
            return Choice(candidate, other, _advantage(candidate, other, by_price), tuple(cramped))
        cramped.append(candidate)
    return None


def _rank(candidate: Candidate, by_price: bool) -> Iterator[tuple[str, float]]:
    """What counts, in this order, less being better; and how to say that it decided."""
    split, capacity = candidate.split, candidate.capacity
    memory = split.memory_gib * candidate.share * candidate.replicas
    yield "keeps the objective, by the estimate", not capacity.meets_slo
    yield "starts with certainty, where the other would be tight", candidate.tight
    yield "holds the whole context", candidate.context < candidate.model_spec.context
    yield "runs vLLM's own builds", split.gpu.engine != "vllm"
    yield "keeps CUDA graphs", candidate.eager
    if by_price:
        yield "costs least", round(candidate.price_per_hour or 0.0, 6)
    else:
        yield "takes the least memory of cards (not every price is known)", round(memory, 3)
    yield "crosses fewer hosts", split.nodes
    yield "takes less memory at the same price", round(memory, 3)
    yield "has fewer pipeline stages", split.pp
    yield "decodes faster", capacity.tpot_s or 0.0


def _advantage(candidate: Candidate, other: Candidate | None, by_price: bool) -> str:
    if other is None:
        return ""
    pairs = zip(_rank(candidate, by_price), _rank(other, by_price), strict=True)
    return next((words for (words, mine), (_, theirs) in pairs if mine < theirs), "stands first in the file")
