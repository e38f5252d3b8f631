"""What the plan of a fleet says about cost: GPUs and price of a replica, load, price of worker groups."""

from dataclasses import dataclass
from pathlib import Path

from rayhelm.deploy.compose.gpu_units import GpuUnit, list_gpu_units
from rayhelm.errors import Fix
from rayhelm.facts import Catalog
from rayhelm.facts.tasks import get_task
from rayhelm.fleet.load import load_fleet
from rayhelm.fleet.models import ModelSpec
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.deployment_names import name_llm_deployment
from rayhelm.planner.plan import ModelPlan, Plan
from rayhelm.planner.planner import plan_fleet

__all__ = ["PlannedModel", "PlannedService", "plan_costs"]


@dataclass(frozen=True)
class PlannedModel:
    """One model of a service at the planned load."""

    name: str
    """Key in the fleet file."""
    application: str
    """Name of its Serve application."""
    served_as: str
    """Label `model_name` of the engine's metrics."""
    deployment: str
    """Serve deployment that holds the GPUs."""
    replicas: int
    gpus: float
    """GPUs of all replicas."""
    price_per_hour: float | None
    """USD for all replicas."""
    price_per_million_output_tokens: float | None
    requests_per_second: float | None
    input_tokens: int | None
    """Per request."""
    output_tokens: int | None
    missing_price: str
    """Why there is no price, and the fix; empty if there is one."""


@dataclass(frozen=True)
class PlannedService:
    """One service of the fleet."""

    namespace: str
    name: str
    models: tuple[PlannedModel, ...]
    units: dict[str, GpuUnit]
    """What Ray counts as a GPU, by worker group."""


def plan_costs(path: Path, facts: Catalog | None = None) -> dict[str, PlannedService]:
    """Plan a fleet, and return its services by name. Raises FleetError."""
    plan = plan_fleet(load_fleet(path), facts)
    return {
        name: PlannedService(
            namespace=service.namespace,
            name=name,
            models=tuple(_build_model(model, plan) for model in plan.of_service(name)),
            units=list_gpu_units(plan.of_service(name), plan),
        )
        for name, service in plan.services.items()
    }


def _build_model(plan: ModelPlan, whole: Plan) -> PlannedModel:
    declared = whole.declared.models[plan.model]
    traffic = declared.traffic
    return PlannedModel(
        name=plan.model,
        application=plan.application,
        served_as=plan.served_as,
        deployment=_name_deployment(plan, declared),
        replicas=plan.serving_replicas,
        gpus=plan.gpus,
        price_per_hour=plan.price_per_hour,
        price_per_million_output_tokens=plan.price_per_million_output_tokens,
        requests_per_second=traffic.requests_per_second * plan.load_share if traffic else None,
        input_tokens=traffic.input_tokens if traffic else None,
        output_tokens=traffic.output_tokens if traffic else None,
        missing_price=_explain_missing_price(plan, whole),
    )


def _name_deployment(plan: ModelPlan, declared: ModelSpec) -> str:
    task = get_task(plan.task)
    if task.server == "vllm":
        return name_llm_deployment(plan)
    served_by = declared.application or task.application
    assert served_by
    return served_by.deployment


def _explain_missing_price(plan: ModelPlan, whole: Plan) -> str:
    if plan.price_per_hour is not None:
        return ""
    fix = Fix("price", "2.10 USD/h", "per GPU; an example, write yours")
    return str(whole.source.locate(problem_at(("pools", plan.pool), f"the price of {plan.gpu} is unknown", fix)))
