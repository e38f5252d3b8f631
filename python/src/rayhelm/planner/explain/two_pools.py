"""A model that no pool has room for, on two pools: in the fleet file two models that the gateway joins."""

from collections.abc import Iterator, Sequence
from itertools import permutations
from math import ceil

from rayhelm.errors import Fix
from rayhelm.planner.placement.allocate import count_possible_replicas
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.model_spec import ResolvedModelSpec

__all__ = ["advise_two_pools"]


def advise_two_pools(model_spec: ResolvedModelSpec, found: Sequence[Candidate]) -> Iterator[Fix]:
    """Yield the two pools that have room for the planned load together, the cheapest pair."""
    declared = model_spec.declared
    is_pinned = declared.pool is not None or declared.replicas is not None
    if is_pinned or not declared.traffic or declared.served_as or model_spec.separates_prefill:
        return
    best = min(_list_pairs(found, declared.traffic.peak_rate), key=lambda pair: pair[0], default=None)
    if best is None:
        return
    _, first, count, second, rest = best
    yield Fix.advice(
        f"two models on two pools have room together: `{model_spec.name}` with {_describe(first, count)}, and another"
        f" model of the same source with {_describe(second, rest)}, servedAs: {{model: {model_spec.name}}};"
        " divide `traffic` between them"
    )


def _list_pairs(
    found: Sequence[Candidate], load: float
) -> Iterator[tuple[tuple[float, str, str], Candidate, int, Candidate, int]]:
    """Yield pairs of candidates with their replicas: all that the first pool holds, and the rest on the second."""
    usable = [each for each in found if not any(each.faults) and each.capacity.carried and each.replicas]
    best: dict[str, Candidate] = {}
    for each in usable:
        name = each.split.inventory.name
        if name not in best or _count_load(each) > _count_load(best[name]):
            best[name] = each
    for first, second in permutations(best.values(), 2):
        count = count_possible_replicas(first)
        left = load - _count_load(first)
        rest = ceil(left / (second.capacity.carried or 1.0))
        is_one_cluster = first.split.inventory.pool.cluster == second.split.inventory.pool.cluster
        if count and 0 < rest <= count_possible_replicas(second) and is_one_cluster:
            price = sum(
                (each.split.price_per_hour or 0.0) * number for each, number in ((first, count), (second, rest))
            )
            yield (price, first.split.inventory.name, second.split.inventory.name), first, count, second, rest


def _count_load(candidate: Candidate) -> float:
    """Return the requests/s that the free GPUs of its pool serve."""
    return count_possible_replicas(candidate) * (candidate.capacity.carried or 0.0)


def _describe(candidate: Candidate, replicas: int) -> str:
    split = candidate.split
    parallelism = f"parallelism: {{tensor: {split.tp}, pipeline: {split.pp}}}"
    return f"pool: {split.inventory.name}, replicas: {replicas}, {parallelism}"
