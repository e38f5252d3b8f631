"""Problems without a file, and what the source map adds to them."""

import pytest

from rayhelm.errors import Fix, FleetError, Problem, Rewrite
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import parse_fleet
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.planner import plan_fleet

TEXT = """\
fleet: a
pools:
  gpu: {gpu: L4-24GB, nodes: 1}
models:
  chat.v1:
    source: one
    context: 8192
"""
DOCUMENT = parse_document(TEXT, "fleet.yaml")
CONTEXT = ("models", "chat.v1", "context")


def test_problem_gets_file_and_line_of_its_key() -> None:
    problem = problem_at(CONTEXT, "too long", Fix(value=4096), alternatives=[Fix("../source", "two")])
    assert (problem.file, problem.line, problem.path) == ("", None, "models.chat.v1.context")
    found = DOCUMENT.locate(problem)
    assert (found.location, found.path) == ("fleet.yaml:7", "models.chat.v1.context")
    assert found.fix_text == "context: 4096"
    assert found.alternatives[0].path == "models.chat.v1.source"
    assert DOCUMENT.locate(found) == found


def test_problem_of_another_file_stays_as_it_is() -> None:
    problem = Problem("not JSON", file="config.json", line=3)
    assert DOCUMENT.locate(problem) == problem


def test_fix_is_made_from_what_the_file_has() -> None:
    more = Rewrite(("pools", "gpu"), lambda written: {**written, "nodes": 4})
    found = DOCUMENT.locate(problem_at(("pools", "gpu"), "too few", Fix("", why="or fewer models", rewrite=more)))
    assert found.fix_text == "gpu: {gpu: L4-24GB, nodes: 4}   # or fewer models"
    assert isinstance(found.fix, Fix)
    assert found.fix.as_dict()["value"] == {"gpu": "L4-24GB", "nodes": 4}


def test_problems_of_a_block_are_joined_once_and_sorted_by_line() -> None:
    last, first = problem_at(CONTEXT, "too long"), problem_at(("fleet",), "too short")
    with pytest.raises(FleetError) as caught, DOCUMENT.joined():
        raise FleetError([last, first, last])
    assert [(problem.line, problem.message) for problem in caught.value.problems] == [(1, "too short"), (7, "too long")]


def test_twenty_problems_of_a_fleet_are_reported_together_by_line() -> None:
    models = "".join(f"  m{number:02}: {{source: Qwn/Qwen3-8B, context: 4096}}\n" for number in reversed(range(20)))
    text = f"fleet: a\npools: {{gpu: {{gpu: L4-24GB, nodes: 20}}}}\nmodels:\n{models}"
    with pytest.raises(FleetError) as caught:
        plan_fleet(parse_fleet(parse_document(text, "fleet.yaml")))
    assert [problem.line for problem in caught.value.problems] == list(range(4, 24))
    assert all(problem.fix for problem in caught.value.problems)
