"""A model on several pools: the pools that have room for it together, and what is missing if they have not."""

from collections.abc import Iterator, Sequence
from itertools import permutations
from math import ceil, floor, log10

from rayhelm.errors import Fix, Problem
from rayhelm.fleet.models import Replicas
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.explain.more_nodes import add_nodes
from rayhelm.planner.placement.allocate import count_possible_replicas
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.choose import Comparison
from rayhelm.planner.placement.cost import compute_cost
from rayhelm.planner.placement.load_shares import PoolRoom, count_replicas, find_room
from rayhelm.planner.placement.model_spec import ResolvedModelSpec

__all__ = ["advise_several_pools", "report_no_room_together"]

_MOST_POOLS = 4
_MOST_TRIED = 8
"""Pools that are combined: those with most room."""


def advise_several_pools(model_spec: ResolvedModelSpec, found: Sequence[Candidate]) -> Iterator[Fix]:
    """Yield the fewest pools that have room together for a model that none has room for, in the cheapest order."""
    declared = model_spec.declared
    if declared.pool or declared.served_as or declared.adapters or model_spec.separates_prefill:
        return
    if isinstance(declared.replicas, Replicas):
        return
    rooms = _list_rooms(found)
    for size in range(2, _MOST_POOLS + 1):
        best = min(_list_combinations(rooms, size), key=lambda each: each[0], default=None)
        if best:
            _, pools, counts = best
            each = " and ".join(f"{count} on `{pool}`" for pool, count in zip(pools, counts, strict=True))
            yield Fix("pools", list(pools), f"these have room together: replicas {each}, and clients see one model")
            return


def _list_rooms(found: Sequence[Candidate]) -> list[PoolRoom]:
    """Return the room of each pool, the largest first."""
    by_pool: dict[str, list[Candidate]] = {}
    for each in found:
        by_pool.setdefault(each.split.inventory.name, []).append(each)
    rooms = [find_room(Comparison(None, tuple(each), (), ())) for each in by_pool.values()]
    usable = [room for room in rooms if room and room.replicas]
    usable.sort(key=lambda room: (-room.replicas * room.each, room.candidate.split.inventory.name))
    return usable[:_MOST_TRIED]


def _list_combinations(
    rooms: Sequence[PoolRoom], size: int
) -> Iterator[tuple[tuple[float, tuple[str, ...]], tuple[str, ...], list[int]]]:
    """Yield pools in order that have room together, with their replicas; the first value ranks them."""
    for chosen in permutations(rooms, size):
        pools = tuple(room.candidate.split.inventory.name for room in chosen)
        counts, left = count_replicas(chosen)
        if not left and len({room.candidate.split.inventory.pool.cluster for room in chosen}) == 1:
            splits = [room.candidate.split for room in chosen]
            costs = [compute_cost(each.price_per_hour, each.memory_gib, by_price=True) for each in splits]
            cost = sum(cost * count for cost, count in zip(costs, counts, strict=True))
            yield (round(cost, 6), pools), pools, counts


def report_no_room_together(model_spec: ResolvedModelSpec, rooms: Sequence[PoolRoom], left: float) -> Problem:
    """Return the problem of a model whose `pools` have too few free GPUs together, or none in one of them. `left`: load
    that has no room."""
    if not all(room.replicas for room in rooms):
        return _report_full_pool(model_spec, rooms)
    pinned, load = model_spec.declared.replicas is not None, rooms[0].load
    unit = "replicas" if pinned else "requests/s"
    have = "; ".join(_describe_room(room, pinned) for room in rooms)
    message = (
        f"model `{model_spec.name}` is planned for {load:.3g} {unit}, and its `pools` have no room for {left:.3g} of"
        f" them: {have}"
    )
    first, *others = _list_fixes(model_spec, rooms, left)
    return problem_at((*model_spec.path, "pools"), message, first, alternatives=others)


def _report_full_pool(model_spec: ResolvedModelSpec, rooms: Sequence[PoolRoom]) -> Problem:
    full = next(room for room in rooms if not room.replicas)
    name = full.candidate.split.inventory.name
    others = [pool for pool in model_spec.declared.pools if pool != name]
    without = Fix("", others) if len(others) > 1 else Fix("../pool", others[0], replaces="")
    message = f"model `{model_spec.name}` has a replica at least on each of its `pools`: {_describe_room(full, True)}"
    possible, spare = count_possible_replicas(full.candidate), full.count_spare(1)
    if spare and possible:
        message += f". It has room for {possible} in all, and `slo.capacityAvailability` needs {spare} more as spare"
    more = add_nodes(full.candidate, 1 + spare - possible)
    return problem_at((*model_spec.path, "pools"), message, without, alternatives=[more])


def _describe_room(room: PoolRoom, pinned: bool) -> str:
    split = room.candidate.split
    serves = "" if pinned else f", {room.replicas * room.each:.3g} requests/s"
    pool = split.inventory
    return (
        f"pool `{pool.name}` holds {room.replicas} with {split.shape.gpu_count * room.candidate.share:g}"
        f" {split.gpu_name} each{serves} ({pool.used:g} of {pool.gpu_count} GPUs are used)"
    )


def _list_fixes(model_spec: ResolvedModelSpec, rooms: Sequence[PoolRoom], left: float) -> Iterator[Fix]:
    for room in reversed(rooms):
        count = room.replicas + ceil(left / room.each)
        needed = count if model_spec.declared.replicas is not None else count + room.count_spare(count)
        yield add_nodes(room.candidate, needed - count_possible_replicas(room.candidate))
    traffic, load = model_spec.declared.traffic, rooms[0].load
    if model_spec.declared.replicas is not None:
        if load - left >= len(rooms):
            yield Fix(f"/models.{model_spec.written}.replicas", int(load - left), "the replicas that have room")
    elif traffic and load > left:
        rate = traffic.find_rate(load - left)
        step = 10 ** (floor(log10(rate)) - 2)
        rounded = float(f"{floor(rate / step) * step:.3g}")
        yield Fix(f"/models.{model_spec.written}.traffic.requestsPerSecond", rounded, "the load that fits")
