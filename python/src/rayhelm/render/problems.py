"""Find settings that a planned fleet lacks for the values of its charts, and overrides that they refuse."""

from collections.abc import Mapping
from typing import Any

from rayhelm.errors import FleetError, Problem, run_all
from rayhelm.planner.plan import Plan
from rayhelm.spec.load import LoadedFleet
from rayhelm.values.build.platform import build_platform_values
from rayhelm.values.build.ray_service import build_ray_service_values
from rayhelm.values.ray_service import RayServiceValues

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
    # Only overrides can make the values of a gateway wrong; its types take long to import.
    if services and any(cluster.gateway.values for cluster in loaded.fleet.clusters.values()):
        from rayhelm.values.build.gateway import build_gateways

        steps["gateway"] = lambda: dict[str, Any](build_gateways(plan, loaded, services))
    try:
        run_all(steps)
    except FleetError as error:
        problems += error.problems
    return tuple(sorted(problems, key=lambda problem: problem.line or 0))
