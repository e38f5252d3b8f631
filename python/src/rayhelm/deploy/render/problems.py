"""Find settings that a planned fleet lacks for the values of its charts, and overrides that they refuse."""

from collections.abc import Mapping
from typing import Any

from rayhelm.deploy.compose.platform import build_platform_values
from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.errors import FleetError, Problem, run_all
from rayhelm.fleet.load import LoadedFleet
from rayhelm.planner.plan import Plan

__all__ = ["find_problems_of_values"]


def find_problems_of_values(plan: Plan, loaded: LoadedFleet) -> tuple[Problem, ...]:
    """Return the problems of all charts together. The plan does not need these settings."""
    services: Mapping[str, RayServiceValues] = {}
    problems: list[Problem] = []
    try:
        services = build_ray_service_values(plan, loaded)
    except FleetError as error:
        problems += error.problems
    steps = {"platform": lambda: dict[str, Any](build_platform_values(plan, loaded, services))}
    if services and _has_overrides(loaded):
        steps["gateway and tenants"] = lambda: _build_others(plan, loaded, services)
    try:
        run_all(steps)
    except FleetError as error:
        problems += error.problems
    return tuple(sorted(problems, key=lambda problem: problem.line or 0))


def _has_overrides(loaded: LoadedFleet) -> bool:
    """Only overrides can make the values of gateways and tenants wrong; their types take long to import."""
    gateways = any(cluster.gateway.values for cluster in loaded.fleet.clusters.values())
    return gateways or any(tenant.values for tenant in loaded.fleet.tenants.values())


def _build_others(plan: Plan, loaded: LoadedFleet, services: Mapping[str, RayServiceValues]) -> dict[str, Any]:
    from rayhelm.deploy.compose.gateway import build_gateways
    from rayhelm.deploy.compose.tenant import build_tenant_values

    gateways = build_gateways(plan, loaded, services)
    return {"gateways": gateways, "tenants": build_tenant_values(plan, loaded, services, gateways)}
