"""Find settings that a planned fleet lacks for the values of its charts."""

from typing import Any

from rayhelm.errors import FleetError, Problem, run_all
from rayhelm.planner.plan import Plan
from rayhelm.spec.load import LoadedFleet
from rayhelm.values.build.platform import build_platform_values
from rayhelm.values.build.ray_service import build_ray_service_values

__all__ = ["find_problems_of_values"]


def find_problems_of_values(plan: Plan, loaded: LoadedFleet) -> tuple[Problem, ...]:
    """Return the problems of all charts together. The plan does not need these settings."""
    try:
        run_all(
            {
                "ray-service": lambda: dict[str, Any](build_ray_service_values(plan, loaded)),
                "platform": lambda: dict[str, Any](build_platform_values(plan, loaded, {})),
            }
        )
    except FleetError as error:
        return tuple(sorted(error.problems, key=lambda problem: problem.line or 0))
    return ()
