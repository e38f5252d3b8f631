"""Units of the GPU resource of worker groups, as Ray counts them: whole GPUs, MIG instances or time slices."""

from collections.abc import Sequence
from dataclasses import dataclass

from rayhelm.planner.placement.cost import find_gpu_price
from rayhelm.planner.plan import ModelPlan, Plan
from rayhelm.planner.workers.kinds import list_pod_kinds, name_pod_kinds

__all__ = ["GpuUnit", "list_gpu_units"]


@dataclass(frozen=True)
class GpuUnit:
    """One unit of the GPU resource of a worker group."""

    gpus: float
    """The unit in GPUs of the plan: 1, or the part that a MIG instance or a time slice is."""
    price: float | None
    """USD per hour; None if the price of the GPU is unknown."""


def list_gpu_units(models: Sequence[ModelPlan], plan: Plan) -> dict[str, GpuUnit]:
    """Return the unit of each worker group of a service by the name of the group. `models` are all of the service."""
    found: dict[str, GpuUnit] = {}
    names = name_pod_kinds(models, plan.declared)
    for model in models:
        pool = plan.declared.pools[model.pool]
        units = model.replicas * model.gpus_per_replica * model.gpu_fraction
        for kind in list_pod_kinds(model, plan.declared):
            if pool.hosts:
                # The price of the model is a sum over unlike GPUs.
                found[names[kind]] = GpuUnit(1.0, find_gpu_price(plan.facts.gpu(kind.gpu), pool)[0])
            elif units and model.gpus:
                price = None if model.price_per_hour is None else round(model.price_per_hour / units, 6)
                found.setdefault(names[kind], GpuUnit(round(model.gpus / units, 4), price))
    return found
