"""The smallest fleet, and what reading it says, for the tests of the fleet file."""

import pytest

from rayhelm.errors import FleetError, Problem
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.load import parse_fleet
from shared.apply_fix import check_fixes

__all__ = ["SMALL", "problems", "read", "the_problem"]

SMALL = """\
fleet: small
pools:
  gpu: {gpu: L4-24GB, nodes: 2}
models:
  chat: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096}
"""


def read(text: str) -> Fleet:
    return parse_fleet(parse_document(text, "fleet.yaml")).fleet


def problems(text: str) -> list[Problem]:
    """The problems of a fleet. Each fix is applied, and has to solve its problem."""
    with pytest.raises(FleetError) as caught:
        read(text)
    found = list(caught.value.problems)
    check_fixes(text, found, read)
    return found


def the_problem(text: str) -> Problem:
    (one,) = problems(text)
    return one
