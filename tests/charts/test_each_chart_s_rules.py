"""Every row of bad values of each chart is refused by every layer that claims it, with its own words."""

import re
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from charts.each_chart import CHARTS, Chart, Values, options_of, replaced
from charts.kit import HELMS, over
from rayhelm.deploy.charts.schema import values_schema
from rayhelm.deploy.charts.shape import keys as keys_of
from rayhelm.errors import FleetError

each_chart = pytest.mark.parametrize("chart", CHARTS, ids=str)


def bad_of(layer: str) -> Any:
    """The rows that a layer claims."""
    return pytest.mark.parametrize(
        ("chart", "name", "bad"),
        [
            pytest.param(chart, name, bad, id=f"{chart}-{name}-{number}")
            for chart in CHARTS
            for name, rule in chart.rules.items()
            if layer in rule.layers
            for number, bad in enumerate(rule.bad)
        ],
    )


@each_chart
def test_there_are_bad_values_for_every_rule(chart: Chart) -> None:
    assert all(rule.bad for rule in chart.rules.values())


@each_chart
def test_every_refusal_of_the_chart_names_a_key(chart: Chart) -> None:
    """Helm knows neither the file nor the line of a value."""
    paths = [r"\{path\}", r"\{key\}", r"\{low\}", *(key.name for key in keys_of(chart.model))]
    names_a_key = re.compile(rf"(?<![\w.])({'|'.join(paths)})")
    refused = {name: rule for name, rule in chart.rules.items() if "chart" in rule.layers}
    assert [name for name, rule in refused.items() if not rule.key and not names_a_key.search(rule.message)] == []


@bad_of("chart")
def test_chart_refuses_bad_values_with_a_fix(chart: Chart, name: str, bad: Values) -> None:
    problem = chart.refused(name, bad)
    assert problem.rule == name
    assert problem.fix
    assert "<no value>" not in str(problem)
    assert not re.search(r"\{[a-z]+\}", problem.message), "its words are filled in"


@bad_of("chart")
def test_fix_is_yaml_that_can_be_pasted_or_a_command(chart: Chart, name: str, bad: Values) -> None:
    fix = chart.refused(name, bad).fix
    if not fix.startswith("helm "):
        loaded = yaml.safe_load(fix)
        assert loaded is None or isinstance(loaded, dict), fix


@bad_of("chart")
def test_fix_is_accepted(chart: Chart, name: str, bad: Values) -> None:
    """A fix that needs a choice replaces its section; any other is merged. A comment names what to remove or rename."""
    fix = chart.refused(name, bad).fix
    loaded = None if fix.startswith("helm ") else yaml.safe_load(fix)
    if not loaded:
        return
    assert not has_null(loaded), "Helm keeps the null of a key that has no default"
    fixed = replaced(bad, loaded) if name in chart.needs_a_choice else over(bad, loaded)
    for key in re.findall(r"[#,] +without (\S+?)(?=,|$)", fix):
        fixed = remove_key(fixed, key)
    rule = chart.rules[name]
    version = {"kuberay": {"version": rule.until or rule.since}} if rule.until or rule.since else {}
    assert chart.broken(over(version, fixed), options_of(rule)) not in (name, "schema")


def remove_key(node: Any, key: str) -> Any:
    """Values without a key, wherever it is."""
    if not isinstance(node, dict):
        return node
    return {name: remove_key(below, key) for name, below in node.items() if name != key}


def has_null(node: Any) -> bool:
    return node is None or (isinstance(node, dict) and any(map(has_null, node.values())))


@bad_of("schema")
def test_schema_refuses_bad_values(chart: Chart, name: str, bad: Values) -> None:
    assert "don't meet the specifications of the schema" in chart.refused(name, bad).message


@bad_of("model")
def test_values_model_refuses_bad_values(chart: Chart, name: str, bad: Values) -> None:
    with pytest.raises(ValidationError):
        chart.model.model_validate(over(chart.smallest(), bad))


@pytest.mark.parametrize("helm", HELMS)
@each_chart
def test_schema_refuses_null_for_every_key_that_has_a_default(chart: Chart, helm: str) -> None:
    """`a: null` in an overlay removes the key before the schema sees it, so every such key has to be required.

    Only a key whose absence has a meaning of its own, as the namespace of a peer, may go."""
    found = list(sections(values_schema(chart.model, chart.name)))
    assert sum(len(keys) for _, keys in found) > 10
    for depth in range(max(len(path) for path, _ in found) + 1):  # one render for the sections of a depth
        values = chart.smallest()
        expected = {f"/{'/'.join(path)}": set(keys) for path, keys in found if len(path) == depth}
        for path in expected:
            put(values, tuple(path.strip("/").split("/")) if path != "/" else (), dict.fromkeys(expected[path]))
        with pytest.raises(FleetError) as caught:
            chart.objects(values, helm)
        assert missing_keys(str(caught.value)) == expected


def missing_keys(message: str) -> dict[str, set[str]]:
    """What a schema error of helm says is missing, by the section."""
    missing: dict[str, set[str]] = {}
    for path, keys in re.findall(r"at '([^']*)': missing propert(?:y|ies) (.*)", message):
        missing.setdefault(path or "/", set()).update(re.findall(r"'([^']+)'", keys))
    return missing


def sections(schema: Values, path: tuple[str, ...] = ()) -> Any:
    """Every section, as a path and the keys that may not be absent. An open map, as a patch, has no defaults."""
    nodes = schema["properties"].items()
    if keys := tuple(name for name, node in nodes if not may_be_null(node)):
        yield path, keys
    for name, node in nodes:
        if "properties" in node and node.get("additionalProperties") is False:
            yield from sections(node, (*path, name))


def may_be_null(node: Values) -> bool:
    return {"type": "null"} in node.get("anyOf", ()) or "null" in node.get("type", ())


def put(values: Values, path: tuple[str, ...], value: Values) -> None:
    for part in path[:-1]:
        values = values.setdefault(part, {})
    values.update({path[-1]: value} if path else value)
