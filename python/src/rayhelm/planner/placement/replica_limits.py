"""Refuse a pinned `replicas.max` that can never be reached, because its replicas would wait for GPUs forever.

Runs after all models are placed. Limits that the planner chose fit by construction."""

from collections.abc import Iterator, Mapping
from math import floor

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.models import Replicas
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.plan import ModelPlan

__all__ = ["check_replica_limits"]


def check_replica_limits(plans: Mapping[str, ModelPlan], chosen: Mapping[str, Candidate], fleet: Fleet) -> None:
    """Raise FleetError if the maximum of replicas does not fit, with all other models at their minimum."""
    problems = [
        problem
        for name, plan in plans.items()
        if isinstance(fleet.models[name].replicas, Replicas)
        for problem in (
            *_check_pool(plan, chosen[name], plans),
            *_check_tenant(plan, chosen[name], plans, fleet),
        )
    ]
    if problems:
        raise FleetError(sorted(problems, key=lambda problem: problem.line or 0))


def _check_pool(plan: ModelPlan, chosen: Candidate, plans: Mapping[str, ModelPlan]) -> Iterator[Problem]:
    inventory = chosen.split.inventory
    others = sum(_count_fewest_gpus(other) for other in plans.values() if other.pool == plan.pool and other is not plan)
    alone = chosen.split.max_replicas * max(1, floor(1 / chosen.share + 1e-9))
    room = min(alone, _count_replicas(inventory.gpu_count - others, chosen))
    if plan.max_replicas > room:
        used = f", of which other models always use {others:g}" if others else ""
        yield _build_problem(
            plan, room, f"pool `{inventory.name}` has {inventory.gpu_count} GPUs{used}: room for {room}"
        )


def _check_tenant(
    plan: ModelPlan, chosen: Candidate, plans: Mapping[str, ModelPlan], fleet: Fleet
) -> Iterator[Problem]:
    declared = fleet.services.get(plan.service)
    tenant = fleet.tenants.get(declared.tenant or "") if declared else None
    if not declared or not tenant or tenant.gpus is None:
        return
    own = set(fleet.services_of(declared.tenant or ""))
    others = sum(_count_fewest_gpus(other) for other in plans.values() if other.service in own and other is not plan)
    room = _count_replicas(tenant.gpus - others, chosen)
    if plan.max_replicas > room:
        used = f", of which its other models always use {others:g}" if others else ""
        message = f"tenant `{declared.tenant}` may use {tenant.gpus:g} GPUs{used}: room for {room}"
        yield _build_problem(plan, room, message)


def _count_fewest_gpus(other: ModelPlan) -> float:
    """Return GPUs that another model uses at its minimum of replicas; fractions count as fractions."""
    return other.gpus / max(other.replicas, 1) * other.min_replicas


def _count_replicas(gpus: float, chosen: Candidate) -> int:
    return max(0, floor(gpus / (chosen.split.whole_gpu_count * chosen.share) + 1e-9))


def _build_problem(plan: ModelPlan, room: int, why: str) -> Problem:
    each = round(plan.gpus / max(plan.replicas, 1), 4)
    return problem_at(
        ("models", plan.model, "replicas", "max"),
        f"up to {plan.max_replicas} replicas of {each:g} GPU{'s' if each > 1 else ''} each, and {why}",
        Fix("..", {"min": min(plan.min_replicas, room), "max": max(room, 1)}),
    )
