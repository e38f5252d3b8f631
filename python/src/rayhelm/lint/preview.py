"""What `rayhelm render` and `rayhelm lint` would refuse in a planned fleet, as far as it is known without helm."""

from collections.abc import Iterator

from rayhelm.errors import Fix, Problem
from rayhelm.planner.plan import Plan
from rayhelm.render.problems import find_problems_of_values
from rayhelm.spec.load import LoadedFleet
from rayhelm.values.build.applications import is_hub_id

__all__ = ["preview_problems"]


def preview_problems(plan: Plan, loaded: LoadedFleet) -> tuple[Problem, ...]:
    """All of them at once, by line, so that the second version of a fleet file is right."""
    found = [*find_problems_of_values(plan, loaded), *_find_unpinned_models(loaded)]
    return tuple(sorted(found, key=lambda problem: problem.line or 0))


def _find_unpinned_models(loaded: LoadedFleet) -> Iterator[Problem]:
    for name, model in loaded.fleet.models.items():
        if is_hub_id(model.source) and not model.revision and not model.unpinned_reason:
            yield loaded.document.problem(
                ("models", name),
                "the admission policy `model-revision` refuses a hub model without `revision`, the 40 hexadecimal"
                " digits of a commit, unless `unpinnedReason` says why it may change",
                Fix("unpinnedReason", "the weights may change: this is a trial"),
                rule="model-revision",
            )
