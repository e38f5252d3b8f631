"""Random overrides end as a FleetError, or as values that the chart's schema accepts; never with a traceback."""

import json
import random
from functools import cache
from typing import Any

import jsonschema
import pytest
import yaml

from charts.kit import over
from deploy.test_overrides import text
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.deploy.charts.rules import rules
from rayhelm.deploy.render.files import render_plan
from rayhelm.deploy.values.emit import select_changed
from rayhelm.errors import FleetError, Problem
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load

PARTS = {"ray-service": "service", "gateway": "gateway", "platform": "cluster"}
JUNK = (None, True, -1, 1.5, "x", "", [], {}, [1], {"a": 1}, {1: 2}, ["x", {"y": None}], "a" * 300, "ü", 10**17)
CASES = 20
"""Of each chart."""


@cache
def schema_of(chart: str) -> tuple[dict[str, Any], jsonschema.Draft202012Validator]:
    folder = charts_dir() / chart
    schema = json.loads((folder / "values.schema.json").read_text())
    return yaml.safe_load((folder / "values.yaml").read_text()), jsonschema.Draft202012Validator(schema)


def list_cases(chart: str) -> list[Any]:
    """Values that break a rule of the chart, half of them with something random in one place."""
    seed = random.Random(chart)
    broken = [bad for rule in rules(chart).values() for bad in rule.bad]
    chosen = seed.sample(broken, CASES)
    return [mutate(bad, seed) if index % 2 else bad for index, bad in enumerate(chosen)]


def mutate(data: Any, seed: random.Random) -> Any:
    if isinstance(data, dict) and data and seed.random() < 0.8:
        key = seed.choice(list(data))
        return {**data, key: mutate(data[key], seed)}
    if isinstance(data, list) and data and seed.random() < 0.6:
        return [mutate(data[0], seed), *data[1:]]
    return seed.choice(JUNK)


@pytest.mark.parametrize("chart", PARTS)
def test_random_overrides_are_refused_or_fit_the_schema(chart: str) -> None:
    problems, refused = list[Problem](), 0
    for values in list_cases(chart):
        try:
            rendered = render_plan(plan_fleet(load(text(**{PARTS[chart]: json.dumps(values)}))))
        except FleetError as error:
            refused += 1
            problems += error.problems
            continue
        for release in rendered.releases:
            if release.chart == chart:
                defaults, validator = schema_of(chart)
                validator.validate(over(defaults, select_changed(release.values)))
    assert 0 < refused < CASES
    assert all(problem.line and str(problem) for problem in problems)
