"""What measurements change in a plan: the same fleet, planned with others."""

from collections.abc import Iterator
from dataclasses import replace

from rayhelm.fleet.measurements import FleetMeasurements
from rayhelm.planner.plan import ModelPlan, Plan
from rayhelm.planner.planner import plan_fleet

__all__ = ["describe_shape", "list_network_changes", "list_shape_changes", "plan_measured"]


def plan_measured(plan: Plan, measured: FleetMeasurements | None) -> Plan:
    """Plan the same fleet with other measurements. Raises FleetError if it has no plan with them."""
    return plan_fleet(replace(plan.source, measured=measured))


def list_shape_changes(before: Plan, after: Plan) -> Iterator[str]:
    """Yield the models of a fleet that are placed, split or scaled otherwise."""
    for name, model in after.models.items():
        old, new = describe_shape(before.models[name]), describe_shape(model)
        if old != new:
            yield f"model `{name}`: {old} becomes {new}"


def list_network_changes(before: Plan, after: Plan) -> Iterator[str]:
    """Yield the pools of both plans whose network has other figures."""
    for name, pool in after.pools.items():
        if name in before.pools and before.pools[name].network != pool.network:
            yield f"pool `{name}`: {before.pools[name].network} is now {pool.network}"


def describe_shape(plan: ModelPlan) -> str:
    replicas = (
        f"{plan.min_replicas}" if plan.min_replicas == plan.max_replicas else f"{plan.min_replicas}-{plan.max_replicas}"
    )
    return f"{replicas} x {plan.split} on pool `{plan.pool}`, {plan.gpus:g} GPUs"
