"""Check the text of a new fleet file as `rayhelm plan`, `render` and `lint` do, before it is written."""

from dataclasses import replace

from rayhelm.check.lint.preview import preview_problems
from rayhelm.errors import FleetError, each_problem
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import parse_fleet
from rayhelm.planner.plan import Plan
from rayhelm.planner.planner import plan_fleet

__all__ = ["plan_text"]


def plan_text(text: str, file: str) -> Plan:
    """Return the plan. Raises FleetError with every problem; they have no lines, because the file does not exist."""
    with each_problem(lambda problem: replace(problem, file="", line=None)):
        plan = plan_fleet(parse_fleet(parse_document(text, file)))
        if problems := preview_problems(plan):
            raise FleetError(problems)
    return plan
