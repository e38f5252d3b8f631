"""A tenant's own services have to stay within the cards that it may hold."""

from rayhelm.errors import FleetError
from rayhelm.planner.plan import Plan
from rayhelm.spec.load import LoadedFleet

__all__ = ["held_by", "owners_within_bounds"]


def held_by(plan: Plan, loaded: LoadedFleet) -> dict[str, float]:
    """Cards that each tenant's services hold at the planned load."""
    held = dict.fromkeys(loaded.fleet.tenants, 0.0)
    for model in plan.models.values():
        service = loaded.fleet.services.get(model.service)
        if service and service.tenant:
            held[service.tenant] += model.gpus
    return held


def owners_within_bounds(plan: Plan, loaded: LoadedFleet) -> None:
    """Raise FleetError where a plan holds more than its owner may."""
    problems = []
    for name, gpus in held_by(plan, loaded).items():
        bound = loaded.fleet.tenants[name].gpus
        if bound is not None and gpus > bound + 1e-9:
            parts = ", ".join(
                f"{model.model} {model.gpus:g}"
                for model in plan.models.values()
                if (service := loaded.fleet.services.get(model.service)) and service.tenant == name
            )
            problems.append(
                loaded.document.problem(
                    ("tenants", name, "gpus"),
                    f"the services of `{name}` hold {gpus:g} GPUs in the plan ({parts}), and it may hold {bound:g}",
                    f"gpus: {gpus:g}",
                )
            )
    if problems:
        raise FleetError(problems)
