"""Every row of bad values of the chart tenant is refused by every layer that claims it, with its own words."""

from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from charts.kit import HELMS, example, over, rendered
from rayhelm.charts.helm import render
from rayhelm.charts.rules import rules
from rayhelm.charts.schema import values_schema
from rayhelm.errors import FleetError, Problem
from rayhelm.values.tenant import TenantValues

CHART = "tenant"
RULES = rules(CHART)
ROWS = [
    pytest.param(name, bad, id=f"{name}-{number}")
    for name, rule in RULES.items()
    for number, bad in enumerate(rule.bad)
]
Values = dict[str, Any]


def rows(layer: str) -> list[Any]:
    return [row for row in ROWS if layer in RULES[str(row.values[0])].layers]


def refused(name: str, bad: Values, helm: str = "4") -> Problem:
    with pytest.raises(FleetError) as caught:
        rendered(
            bad, chart=CHART, base="tenant/minimal", release=RULES[name].release or "research", namespace="tenants",
            helm=helm,
        )  # fmt: skip
    return caught.value.problems[0]


def broken(overlay: Values) -> str:
    """The rule that is broken first, if any."""
    try:
        rendered(overlay, chart=CHART, base="tenant/minimal", release="research", namespace="tenants")
    except FleetError as error:
        return error.problems[0].rule
    return ""


def test_there_are_bad_values_for_every_rule() -> None:
    assert all(rule.bad for rule in RULES.values())
    assert len(ROWS) > 60


@pytest.mark.parametrize(("name", "bad"), rows("chart"))
def test_the_chart_refuses_it_and_says_how_to_mend_it(name: str, bad: Values) -> None:
    problem = refused(name, bad)
    assert problem.rule == name
    assert problem.mend
    assert "<no value>" not in str(problem)
    for word in ("path", "name", "resource", "mend", "who", "role", "sum"):
        assert f"{{{word}}}" not in problem.message + problem.mend


@pytest.mark.parametrize(("name", "bad"), rows("chart"))
def test_a_mend_is_yaml_that_can_be_pasted(name: str, bad: Values) -> None:
    mend = refused(name, bad).mend
    if not mend.startswith("helm "):
        loaded = yaml.safe_load(mend)
        assert loaded is None or isinstance(loaded, dict), mend


@pytest.mark.parametrize(
    ("name", "bad"),
    [row for row in rows("chart") if str(row.values[0]) in ("quota-under-plan", "limit-zero", "limit-range-min")],
)
def test_a_mend_mends(name: str, bad: Values) -> None:
    assert broken(over(bad, yaml.safe_load(refused(name, bad).mend))) != name


@pytest.mark.parametrize(("name", "bad"), rows("schema"))
def test_the_schema_refuses_it(name: str, bad: Values) -> None:
    assert "don't meet the specifications of the schema" in refused(name, bad).message


@pytest.mark.parametrize(("name", "bad"), rows("model"))
def test_the_model_refuses_it(name: str, bad: Values) -> None:
    with pytest.raises(ValidationError):
        TenantValues.model_validate(over(example("tenant/minimal"), bad))


@pytest.mark.parametrize(
    "good",
    [
        {},
        {"quota": {"gpus": {"nvidia.com/gpu": {"planned": 0, "steady": 4, "surge": 0}}}},
        {"quota": {"gpus": {"nvidia.com/gpu": None}}},
        {"quota": {"objects": {"persistentVolumeClaims": 0}}},
        {"limits": {"container": {"min": {"cpu": "50m", "memory": "64Mi"}, "max": {"cpu": 64, "memory": "1Ti"}}}},
        {"limits": {"container": {"min": {"cpu": 0.05}}}},
        {"namespace": {"manage": False, "name": "tenants"}},
        {"namespace": {"name": "kubeflow"}},
        {"networkPolicy": {"dns": {"peer": {"namespace": ""}, "cidrs": ["169.254.20.10/32"]}}},
        {"nameOverride": "a" * 63},
        {"access": {"viewers": {"users": ["research"], "groups": ["others"]}}},
        {"access": {"deployers": {"serviceAccounts": ["research-ci/deployer"]}}},
    ],
)
def test_what_is_good_is_not_refused(good: Values) -> None:
    assert broken(good) == ""


@pytest.mark.parametrize("helm", HELMS)
def test_both_helms_say_the_same(helm: str) -> None:
    problem = refused("quota-under-plan", RULES["quota-under-plan"].bad[0], helm)
    assert problem.rule == "quota-under-plan"
    assert problem.message == (
        "quota.gpus.nvidia.com/gpu: the plan gives the tenant's services 2 cards, and steady allows 1"
    )
    assert problem.mend == "quota: {gpus: {nvidia.com/gpu: {steady: 2}}}   # or plan for fewer"


def test_a_typing_error_in_a_resource_is_told_from_a_card_that_is_new() -> None:
    problem = refused("resource-unknown", {"quota": {"gpus": {"nvidia.com/gpus": {"planned": 1, "surge": 1}}}})
    assert "nvidia.com/gpu, nvidia.com/gpu.shared, amd.com/gpu" in problem.message
    assert yaml.safe_load(problem.mend)["quota"]["cards"][-1] == "nvidia.com/gpus"


@pytest.mark.parametrize("helm", HELMS)
def test_a_null_is_refused_wherever_it_would_drop_a_default(helm: str) -> None:
    """`a: null` in an overlay removes the key before anybody sees it, so every such key has to be required."""
    found = list(sections(values_schema(TenantValues, CHART)))
    assert sum(len(keys) for _, keys in found) > 60
    for path, keys in found:
        values = example("tenant/minimal")
        put(values, path, dict.fromkeys(keys))
        with pytest.raises(FleetError) as caught:
            render(CHART, "research", "tenants", values, helm=HELMS[helm])
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
