"""Every row of bad values of the chart gateway is refused by every layer that claims it, with its own words."""

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
from rayhelm.values.gateway import GatewayValues

RULES = rules("gateway")
ROWS = [
    pytest.param(name, bad, id=f"{name}-{number}")
    for name, rule in RULES.items()
    for number, bad in enumerate(rule.bad)
]
Values = dict[str, Any]


def rows(layer: str, *names: str) -> list[Any]:
    return [
        row
        for row in ROWS
        if layer in RULES[str(row.values[0])].layers and (not names or str(row.id).rpartition("-")[0] in names)
    ]


def objects(overlay: Values, release: str = "", helm: str = "4") -> list[Any]:
    return rendered(overlay, chart="gateway", base="gateway/minimal", release=release or "door", helm=helm)


def refused(name: str, bad: Values, helm: str = "4") -> Problem:
    with pytest.raises(FleetError) as caught:
        objects(bad, RULES[name].release, helm)
    return caught.value.problems[0]


def broken(overlay: Values) -> str:
    """The rule that is broken first, if any."""
    try:
        objects(overlay)
    except FleetError as error:
        return error.problems[0].rule or "schema"
    return ""


def test_there_are_bad_values_for_every_rule() -> None:
    assert all(rule.bad for rule in RULES.values())
    assert len(ROWS) > 80


@pytest.mark.parametrize(("name", "bad"), rows("chart"))
def test_the_chart_refuses_it_and_says_how_to_mend_it(name: str, bad: Values) -> None:
    problem = refused(name, bad)
    assert problem.rule == name
    assert "<no value>" not in str(problem)
    # In a mend only YAML has braces; in a message nothing has, once its words are filled in.
    assert not re.search(r"\{[a-z]+\}", problem.message)
    mend = yaml.safe_load(problem.mend)
    assert mend is None or isinstance(mend, dict)


MENDS = (
    "name-length",
    "name-form",
    "tenant-key-secret",
    "tenant-keys-shared",
    "tenant-models-missing",
    "model-unknown",
    "limit-zero",
    "pin-version-unknown",
    "model-nobody",
    "route-duplicate",
    "ports-equal",
    "drain-time",
    "body-memory",
    "autoscaling-bounds",
    "network-policy-reason",
    "dns-egress",
    "keda-server",
    "keda-target",
    "exposure-hosts",
    "exposure-parent",
    "exposure-tls",
    "exposure-callers",
)


@pytest.mark.parametrize(("name", "bad"), [row for row in rows("chart", *MENDS) if row.id != "route-duplicate-2"])
def test_a_mend_mends(name: str, bad: Values) -> None:
    assert broken(over(bad, yaml.safe_load(refused(name, bad).mend))) != name


@pytest.mark.parametrize(("name", "bad"), rows("schema"))
def test_the_schema_refuses_it(name: str, bad: Values) -> None:
    with pytest.raises(FleetError, match="don't meet the specifications of the schema"):
        objects(bad)


@pytest.mark.parametrize(("name", "bad"), rows("model"))
def test_the_model_refuses_it(name: str, bad: Values) -> None:
    with pytest.raises(ValidationError):
        GatewayValues.model_validate(over(example("gateway/minimal"), bad))


def endpoint(**fields: Any) -> Values:
    return {"models": {"llama-8b": {"versions": {"stable": {"endpoints": {"here": None, "there": fields}}}}}}


@pytest.mark.parametrize(
    "good",
    [
        endpoint(host="llm.example", peer={"namespace": "llm"}),
        {**endpoint(host="llm.example"), "networkPolicy": {"enabled": False, "reason": "x"}},
        {"networkPolicy": {"dns": {"peer": {"namespace": ""}, "cidrs": ["169.254.20.10/32"]}}},
        {"limits": {"bodyBytes": 16_777_216, "connections": 50}},
        {"limits": {"connections": 10_000}, "resources": {"memory": "16Gi"}},
        {"resources": {"memory": 2_147_483_648}},
        {"image": {"tag": "latest", "digest": f"sha256:{'0' * 64}"}},
        {"autoscaling": {"kind": "None"}, "replicas": 1},
        {"models": {"llama-8b": {"path": "/v1"}}},
    ],
)
def test_what_is_good_is_not_refused(good: Values) -> None:
    assert broken(good) == ""


def test_two_models_of_one_application_are_fine_where_bodies_are_read() -> None:
    one = example("gateway/minimal")["models"]["llama-8b"]
    other = {**one, "task": "transcribe", "path": "/audio"}
    assert broken({"tenants": {"acme": {"models": ["llama-8b", "audio"]}}, "models": {"audio": other}}) == ""


@pytest.mark.parametrize("helm", HELMS)
def test_both_helms_say_the_same(helm: str) -> None:
    problem = refused("weights-sum", {"models": {"llama-8b": {"versions": {"stable": {"weight": 80}}}}}, helm)
    assert problem.message == "the weights of llama-8b are 80 percent together, not 100: stable 80"
    assert yaml.safe_load(problem.mend) == {"models": {"llama-8b": {"versions": {"stable": {"weight": 100}}}}}


@pytest.mark.parametrize("helm", HELMS)
def test_a_null_is_refused_wherever_it_would_drop_a_default(helm: str) -> None:
    """`a: null` in an overlay removes the key before anybody sees it, so every such key has to be required."""
    found = list(sections(values_schema(GatewayValues, "gateway")))
    assert sum(len(keys) for _, keys in found) > 80
    for path, keys in found:
        values = example("gateway/minimal")
        put(values, path, dict.fromkeys(keys))
        with pytest.raises(FleetError) as caught:
            render("gateway", "door", "models", values, helm=HELMS[helm])
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
