"""What measurements change in a plan: the same fleet, planned with others."""

from collections.abc import Iterator
from dataclasses import replace

from rayhelm.errors import collect
from rayhelm.fleet.load import LoadedFleet
from rayhelm.fleet.measurements import FleetMeasurements
from rayhelm.planner.plan import ModelPlan, Plan
from rayhelm.planner.planner import plan_fleet

__all__ = ["describe_shape", "list_measured_changes", "list_network_changes"]


def list_measured_changes(
    loaded: LoadedFleet, before: FleetMeasurements | None, after: FleetMeasurements | None
) -> Iterator[str]:
    """Yield the models that are placed, split or scaled otherwise with the measurements `after`.

    Raises FleetError if the fleet has no plan with them."""
    second = plan_fleet(replace(loaded, measured=after))
    first, problems = collect(lambda: plan_fleet(replace(loaded, measured=before)))
    if not first:
        yield f"without these measurements the fleet has no plan ({problems[0].message})"
        return
    for name, model in second.models.items():
        old, new = describe_shape(first.models[name]), describe_shape(model)
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
