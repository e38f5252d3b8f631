"""Every row of bad values of the chart platform is refused by every layer that claims it, with its own words."""

import re
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from charts.kit import HELMS, example, over, rendered
from rayhelm.charts.helm import render
from rayhelm.charts.rules import rules
from rayhelm.charts.schema import values_schema
from rayhelm.errors import FleetError, Problem
from rayhelm.values.platform import PlatformValues

CHART = "platform"
RULES = rules(CHART)
ROWS = [
    pytest.param(name, bad, id=f"{name}-{number}")
    for name, rule in RULES.items()
    for number, bad in enumerate(rule.bad)
]
NEEDS_A_CHOICE = {"adapter-nothing", "scrape-nothing", "metric-not-scraped", "autoscaler-service", "metric-of-others"}
"""Rules whose mend has names to fill in, or is one of several ways."""
Values = dict[str, Any]


def rows(layer: str) -> list[Any]:
    return [row for row in ROWS if layer in RULES[str(row.values[0])].layers]


def refused(name: str, bad: Values, helm: str = "4") -> Problem:
    with pytest.raises(FleetError) as caught:
        rendered(
            bad, chart=CHART, base="platform/minimal", release=RULES[name].release or "platform",
            namespace="rayhelm-system", helm=helm,
        )  # fmt: skip
    return caught.value.problems[0]


def broken(overlay: Values) -> str:
    """The rule that is broken first, if any."""
    try:
        rendered(overlay, chart=CHART, base="platform/minimal", release="platform", namespace="rayhelm-system")
    except FleetError as error:
        return error.problems[0].rule
    return ""


def test_there_are_bad_values_for_every_rule() -> None:
    assert all(rule.bad for rule in RULES.values())


@pytest.mark.parametrize(("name", "bad"), rows("chart"))
def test_the_chart_refuses_it_and_says_how_to_mend_it(name: str, bad: Values) -> None:
    problem = refused(name, bad)
    assert problem.rule == name
    assert problem.mend
    assert "<no value>" not in str(problem)
    assert not re.search(r"\{[a-z]+\}", problem.message + problem.mend)


@pytest.mark.parametrize(("name", "bad"), rows("chart"))
def test_a_mend_is_yaml_that_can_be_pasted(name: str, bad: Values) -> None:
    mend = refused(name, bad).mend
    loaded = yaml.safe_load(mend)
    assert loaded is None or isinstance(loaded, dict), mend


@pytest.mark.parametrize(("name", "bad"), [row for row in rows("chart") if str(row.values[0]) not in NEEDS_A_CHOICE])
def test_a_mend_mends(name: str, bad: Values) -> None:
    assert broken(over(bad, yaml.safe_load(refused(name, bad).mend))) != name


@pytest.mark.parametrize(("name", "bad"), rows("schema"))
def test_the_schema_refuses_it(name: str, bad: Values) -> None:
    assert "don't meet the specifications of the schema" in refused(name, bad).message


@pytest.mark.parametrize(("name", "bad"), rows("model"))
def test_the_model_refuses_it(name: str, bad: Values) -> None:
    with pytest.raises(ValidationError):
        PlatformValues.model_validate(over(example("platform/minimal"), bad))


@pytest.mark.parametrize(
    "good",
    [
        {},
        {"priorityClasses": {"gateway": {"value": 1_000_000_000}}},
        {"priorityClasses": {"batch": {"value": -1, "preempts": True}}},
        {"runtimeClasses": {"nvidia": {"handler": "nvidia"}, "kata": {"handler": "kata-qemu"}}},
    ],
)
def test_what_is_good_is_not_refused(good: Values) -> None:
    assert broken(good) == ""


@pytest.mark.parametrize("helm", HELMS)
def test_both_helms_say_the_same(helm: str) -> None:
    problem = refused("duplicate", RULES["duplicate"].bad[0], helm)
    assert problem.rule == "duplicate"
    assert problem.message == "priorityClasses.workers.name: rayhelm-head is already the name of priorityClasses.head"
    assert problem.mend == "priorityClasses: {workers: {name: rayhelm-workers}}"


@pytest.mark.parametrize("helm", HELMS)
def test_a_null_is_refused_wherever_it_would_drop_a_default(helm: str) -> None:
    """`a: null` in an overlay removes the key before anybody sees it, so every such key has to be required."""
    found = list(sections(values_schema(PlatformValues, CHART)))
    assert sum(len(keys) for _, keys in found) > 10
    for path, keys in found:
        values = example("platform/minimal")
        put(values, path, dict.fromkeys(keys))
        with pytest.raises(FleetError) as caught:
            render(CHART, "platform", "rayhelm-system", values, helm=HELMS[helm])
        missing = next(line for line in str(caught.value).splitlines() if "missing propert" in line)
        assert {key for key in keys if f"'{key}'" in missing} == set(keys)


def sections(schema: Values, path: tuple[str, ...] = ()) -> Any:
    """Every section, as a path and its keys."""
    yield path, tuple(schema["properties"])
    for name, node in schema["properties"].items():
        if "properties" in node:
            yield from sections(node, (*path, name))


def put(values: Values, path: tuple[str, ...], value: Values) -> None:
    for part in path[:-1]:
        values = values.setdefault(part, {})
    values.update({path[-1]: value} if path else value)
