"""Problems that `rayhelm render` and `rayhelm lint` would find in a planned fleet, without helm."""

from collections.abc import Iterator

from rayhelm.check.lint.unpinned import RULE, UNPINNED_FIX, list_unpinned_models
from rayhelm.deploy.compose.fleet_values import preview_values
from rayhelm.errors import Problem
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.plan import Plan

__all__ = ["preview_problems"]


def preview_problems(plan: Plan) -> tuple[Problem, ...]:
    """Return all problems by line, so that the user can fix all of them at once."""
    found = map(plan.source.locate, (*preview_values(plan), *_find_unpinned_models(plan.source.fleet)))
    return tuple(sorted(found, key=lambda problem: problem.line or 0))


def _find_unpinned_models(fleet: Fleet) -> Iterator[Problem]:
    message = "the admission policy `model-revision` refuses a model of a hub without `revision` or `unpinnedReason`"
    for name in list_unpinned_models(fleet, fleet.models):
        yield problem_at(("models", name), message, UNPINNED_FIX, RULE)
