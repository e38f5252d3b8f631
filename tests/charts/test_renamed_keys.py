"""Old keys are refused with the new key, in each chart and by both Helms."""

import copy
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from charts.each_chart import CHARTS, Chart, Values, chart_of
from charts.kit import HELMS, example, over
from ci.chart_files import generated
from rayhelm.deploy.charts.helm import charts_dir, render
from rayhelm.deploy.charts.schema import values_schema
from rayhelm.errors import FleetError, Problem
from rayhelm.facts.renamed import Renamed, renamed

OLD_VALUE = "the old value"
ROWS = [pytest.param(chart, row, id=f"{chart}-{row.old}") for chart in CHARTS for row in renamed(chart.name)]
PLANTED = {
    "tenant": (
        Renamed(old="quota.kinds", new="quota.gpus"),
        Renamed(old="networkPolicy.dns.peer.space", new="networkPolicy.dns.peer.namespace"),
    ),
    "platform": (
        Renamed(old="nvidia.pools.*.model", new="nvidia.pools.*.gpu"),
        Renamed(old="metrics.services.*.space", new="metrics.services.*.namespace"),
        Renamed(old="classes", new="priorityClasses", fix="priorityClasses:\n  head: {value: 1}"),
    ),
    "gateway": (
        Renamed(old="models.*.versions.*.share", new="models.*.versions.*.weight"),
        Renamed(old="models.*.kind", new="models.*.task"),
    ),
}
"""Rows that no table has: required keys, keys of one kind of entry in two places, several `*`."""
PLANTED_ROWS = [
    pytest.param(chart_of(name), row, id=f"{name}-{row.old}") for name, rows in PLANTED.items() for row in rows
]


def fullest(chart: Chart) -> Values:
    return copy.deepcopy(example("everything" if chart.name == "ray-service" else f"{chart.name}/everything"))


@cache
def schema_without_the_table(chart: Chart) -> Draft202012Validator:
    return Draft202012Validator(values_schema(chart.model, chart.name))


def with_old_key(chart: Chart, row: Renamed, *, both: bool = False) -> tuple[Values, str, str]:
    """The fullest values with the old key in place of the new one, or beside it; the old and the new path."""
    values = fullest(chart)
    *above, key = row.old.split(".")
    node, old, new = values, [], row.new
    for part in above:
        name = next(iter(node.get(part, {}) if part != "*" else node), "some") if part == "*" else part
        new = new.replace("*", name, 1) if part == "*" else new
        node, old = node.setdefault(name, {}), [*old, name]
    node[key] = OLD_VALUE
    *_, new_key = row.new.split(".")
    if not both and row.new.split(".")[:-1] == above:
        node.pop(new_key, None)
    return values, ".".join([*old, key]), new


def refusal(chart: str, values: Values, helm: str) -> Problem:
    with pytest.raises(FleetError) as caught:
        render(chart, "release", "release", values, helm=HELMS[helm])
    return caught.value.problems[0]


def assert_names_the_new_key(problem: Problem, row: Renamed, old: str, new: str) -> None:
    assert problem.rule == "renamed-key", problem.message
    assert problem.message == f"{old}: renamed in 0.2.0 to {new}"
    fix = yaml.safe_load(problem.fix)
    if row.fix:
        assert fix == yaml.safe_load(row.fix)
        return
    assert at(fix, new) == OLD_VALUE


def at(node: Any, path: str) -> Any:
    """The value at a path whose names may have dots: `models.qwen2.5-7b.task`."""
    while path:
        key = next(key for key in node if f"{path}.".startswith(f"{key}."))
        node, path = node[key], path[len(key) + 1 :]
    return node


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize(("chart", "row"), ROWS)
def test_old_key_is_refused_with_the_new_key(chart: Chart, row: Renamed, helm: str) -> None:
    values, old, new = with_old_key(chart, row)
    assert_names_the_new_key(refusal(chart.name, values, helm), row, old, new)


@pytest.mark.parametrize(("chart", "row"), ROWS)
def test_old_key_is_refused_beside_the_new_key(chart: Chart, row: Renamed) -> None:
    values, old, new = with_old_key(chart, row, both=True)
    assert_names_the_new_key(refusal(chart.name, values, "4"), row, old, new)


def only_old_key(chart: Chart, row: Renamed) -> tuple[Values, str, str]:
    """Values with the old key and nothing else; the old and the new path. Entries have names of the fullest values."""
    above, names, new = fullest(chart), [], row.new
    for part in row.old.split("."):
        name = next(iter(above), "some") if part == "*" else part
        new = new.replace("*", name, 1) if part == "*" else new
        above, names = above.get(name) or {}, [*names, name]
    values: Any = OLD_VALUE
    for name in reversed(names):
        values = {name: values}
    return values, ".".join(names), new


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize(("chart", "row"), ROWS)
def test_old_key_is_refused_with_the_new_key_when_all_else_is_missing(chart: Chart, row: Renamed, helm: str) -> None:
    values, old, new = only_old_key(chart, row)
    assert_names_the_new_key(refusal(chart.name, values, helm), row, old, new)


@pytest.mark.parametrize("chart", CHARTS, ids=str)
def test_entry_without_an_old_key_requires_the_same_keys_as_without_the_table(chart: Chart) -> None:
    strict = schema_without_the_table(chart)
    relaxed = Draft202012Validator(values_schema(chart.model, chart.name, renamed(chart.name)))
    for row in renamed(chart.name):
        values = node = only_old_key(chart, row)[0]
        while node != OLD_VALUE:
            (name,), parent = node, node
            node = node[name]
        del parent[name]
        assert required_keys(relaxed, values) == required_keys(strict, values)


def required_keys(schema: Draft202012Validator, values: Values) -> set[tuple[str, str]]:
    """Paths and messages about missing keys."""
    return {(error.json_path, error.message) for error in schema.iter_errors(values) if error.validator == "required"}


@pytest.mark.parametrize(("chart", "row"), ROWS)
def test_old_key_is_gone_and_the_new_key_is_there(chart: Chart, row: Renamed) -> None:
    """Without the table the schema knows the new key and refuses the old one."""
    assert not row.old.endswith("*")
    schema = schema_without_the_table(chart)
    assert any("Additional properties" in error.message for error in schema.iter_errors(with_old_key(chart, row)[0]))
    assert not has_unknown_key(chart)


@cache
def has_unknown_key(chart: Chart) -> bool:
    """Whether the fullest values have one."""
    errors = schema_without_the_table(chart).iter_errors(fullest(chart))
    return any("Additional properties" in error.message for error in errors)


@pytest.mark.parametrize(("chart", "row"), ROWS)
def test_old_key_is_in_no_document(chart: Chart, row: Renamed) -> None:
    path = row.old.replace("*", "<name>")
    assert f"`{path}`" not in chart.readme


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Charts whose tables are PLANTED."""
    folder = tmp_path_factory.mktemp("charts")
    for name, rows in PLANTED.items():
        shutil.copytree(charts_dir() / name, folder / name)
        for path, text in generated(name, rows).items():
            (folder / path).write_text(text)
    return folder


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize(("chart", "row"), PLANTED_ROWS)
def test_planted_key_is_refused_with_the_new_key(planted: Path, chart: Chart, row: Renamed, helm: str) -> None:
    for both in (False, True):
        values, old, new = with_old_key(chart, row, both=both)
        assert_names_the_new_key(refusal(str(planted / chart.name), values, helm), row, old, new)


@pytest.mark.parametrize("name", PLANTED)
def test_chart_with_planted_keys_takes_the_same_values(planted: Path, name: str) -> None:
    chart = chart_of(name)
    for values in (chart.smallest(), fullest(chart)):
        assert render(str(planted / name), chart.release, chart.namespace, values) == chart.text(values)


def test_schema_with_planted_keys_admits_no_other_key() -> None:
    chart = chart_of("tenant")
    values = over(
        chart.smallest(), {"networkPolicy": {"extraPolicies": {"db": {"ingress": {"from": {"x": {"space": "a"}}}}}}}
    )
    schema = Draft202012Validator(values_schema(chart.model, "tenant", PLANTED["tenant"]))
    assert any("'space' was unexpected" in error.message for error in schema.iter_errors(values))


def test_schema_with_planted_keys_requires_the_new_key() -> None:
    chart = chart_of("platform")
    schema = Draft202012Validator(values_schema(chart.model, "platform", PLANTED["platform"]))
    missing = {"metrics": {"services": {"chat": {}}}}
    assert any("'namespace' is a required property" in error.message for error in schema.iter_errors(missing))


def test_renamed_key_finds_every_old_key_of_values() -> None:
    row = Renamed(old="tenants.*.pins", new="tenants.*.pinnedVersions")
    values = {"tenants": {"acme": {"pins": {}}, "b": {}, "c": {"pins": 1}}}
    assert list(row.found(values)) == [
        ("tenants.acme.pins", "tenants.acme.pinnedVersions"),
        ("tenants.c.pins", "tenants.c.pinnedVersions"),
    ]
    assert list(row.found({"tenants": None})) == []
