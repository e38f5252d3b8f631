"""Refuse a pinned `replicas.max` that can never be reached, because its replicas would wait for GPUs forever.

Runs after all models are placed. Limits that the planner chose fit by construction."""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, floor
from typing import NamedTuple

from rayhelm.errors import Fix, Problem
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.models import Replicas
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.explain.more_nodes import add_nodes
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.plan import ModelPlan

__all__ = ["TooLarge", "find_too_large"]


class TooLarge(NamedTuple):
    """A model whose maximum of replicas has no room with the GPUs that its replicas were given."""

    model: str
    gpus: float
    """Of a replica."""
    problem: Problem


class _Room(NamedTuple):
    """How many replicas one limit allows."""

    replicas: int
    why: str
    raise_limit: Fix
    """The limit with which the maximum fits."""


def find_too_large(plans: Mapping[str, ModelPlan], chosen: Mapping[str, Candidate], fleet: Fleet) -> Iterator[TooLarge]:
    """Yield the models whose maximum of replicas does not fit, with all other models at their minimum."""
    for name, plan in plans.items():
        if not isinstance(fleet.models[name].replicas, Replicas):
            continue
        candidate = chosen[name]
        rooms = [_find_room_in_pool(plan, candidate, plans), *_find_room_of_tenant(plan, candidate, plans, fleet)]
        if short := [room for room in rooms if plan.max_replicas > room.replicas]:
            yield TooLarge(name, candidate.split.whole_gpu_count * candidate.share, _build_problem(plan, short))


def _find_room_in_pool(plan: ModelPlan, chosen: Candidate, plans: Mapping[str, ModelPlan]) -> _Room:
    inventory = chosen.split.inventory
    others = sum(_count_fewest_gpus(other) for other in plans.values() if other.pool == plan.pool and other is not plan)
    alone = chosen.split.max_replicas * max(1, floor(1 / chosen.share + 1e-9))
    room = min(alone, _count_replicas(inventory.gpu_count - others, chosen))
    used = f", of which other models always use {others:g}" if others else ""
    why = f"pool `{inventory.name}` has {inventory.gpu_count} GPUs{used}"
    return _Room(room, why, add_nodes(chosen, max(1, plan.max_replicas - room)))


def _find_room_of_tenant(
    plan: ModelPlan, chosen: Candidate, plans: Mapping[str, ModelPlan], fleet: Fleet
) -> Iterator[_Room]:
    declared = fleet.services.get(plan.service)
    tenant = fleet.tenants.get(declared.tenant or "") if declared else None
    if not declared or not tenant or tenant.gpus is None:
        return
    own = set(fleet.services_of(declared.tenant or ""))
    others = sum(_count_fewest_gpus(other) for other in plans.values() if other.service in own and other is not plan)
    used = f", of which its other models always use {others:g}" if others else ""
    why = f"tenant `{declared.tenant}` may use {tenant.gpus:g} GPUs{used}"
    enough = ceil(others + plan.max_replicas * chosen.split.whole_gpu_count * chosen.share - 1e-9)
    more = Fix(f"/tenants.{declared.tenant}.gpus", enough, f"for {plan.max_replicas} replicas")
    yield _Room(_count_replicas(tenant.gpus - others, chosen), why, more)


def _count_fewest_gpus(other: ModelPlan) -> float:
    """Return GPUs that another model uses at its minimum of replicas; fractions count as fractions."""
    return other.gpus / max(other.replicas, 1) * other.min_replicas


def _count_replicas(gpus: float, chosen: Candidate) -> int:
    return max(0, floor(gpus / (chosen.split.whole_gpu_count * chosen.share) + 1e-9))


def _build_problem(plan: ModelPlan, rooms: Sequence[_Room]) -> Problem:
    """Return the problem with all limits that are too low. Only a single one can be raised in place of the maximum."""
    each, least = round(plan.gpus / max(plan.replicas, 1), 4), min(room.replicas for room in rooms)
    why = "; ".join(f"{room.why}: room for {room.replicas}" for room in rooms)
    return problem_at(
        (*plan.path, "replicas", "max"),
        f"up to {plan.max_replicas} replicas of {each:g} GPU{'s' if each > 1 else ''} each, and {why}",
        Fix("..", {"min": min(plan.min_replicas, least), "max": max(least, 1)}),
        alternatives=[rooms[0].raise_limit] if len(rooms) == 1 else [],
    )
