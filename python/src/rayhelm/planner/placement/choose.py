"""Choose among placement candidates: first by objective, then certainty of the start, cost, and simplicity."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rayhelm.planner.placement.allocate import count_possible_replicas
from rayhelm.planner.placement.candidates import Candidate

__all__ = ["Choice", "choose"]


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


def choose(found: Sequence[Candidate]) -> Choice | None:
    """Return the best candidate that the free GPUs hold, or None."""
    by_price = all(candidate.price_per_hour is not None for candidate in found)
    ranked = sorted(found, key=lambda candidate: [value for _, value in _list_criteria(candidate, by_price)])
    cramped: list[Candidate] = []
    for index, candidate in enumerate(ranked):
        if count_possible_replicas(candidate) >= candidate.replicas:
            other = next((later for later in ranked[index + 1 :] if later.split != candidate.split), None)
            return Choice(candidate, other, _find_advantage(candidate, other, by_price), tuple(cramped))
        cramped.append(candidate)
    return None


def _list_criteria(candidate: Candidate, by_price: bool) -> Iterator[tuple[str, float]]:
    """Yield the criteria in order, each with its text for the plan; a smaller value is better."""
    split, capacity = candidate.split, candidate.capacity
    memory = split.memory_gib * candidate.share * candidate.replicas
    yield "meets the SLO by the estimate", not capacity.meets_slo
    yield "starts with certainty; the second choice is tight", candidate.tight
    yield "has the requested context", candidate.context < candidate.model_spec.context
    yield "official vLLM builds run on it", split.gpu.engine != "vllm"
    yield "keeps CUDA graphs", candidate.eager
    if by_price:
        yield "lowest price", round(candidate.price_per_hour or 0.0, 6)
    else:
        yield "least GPU memory (some prices are unknown)", round(memory, 3)
    yield "uses fewer hosts per replica", split.nodes
    yield "uses less GPU memory at the same price", round(memory, 3)
    yield "has fewer pipeline stages", split.pp
    yield "decodes faster", capacity.tpot_s or 0.0


def _find_advantage(candidate: Candidate, other: Candidate | None, by_price: bool) -> str:
    if other is None:
        return ""
    pairs = zip(_list_criteria(candidate, by_price), _list_criteria(other, by_price), strict=True)
    return next(
        (words for (words, mine), (_, theirs) in pairs if mine < theirs), "equal in all criteria, and first by name"
    )
