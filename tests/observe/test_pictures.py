"""Pictures of dashboards: drawn from queries, with a report of panels without data, with errors or without a unit."""

import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread

from ci.pictures.__main__ import has_unit, read_reasons, report
from ci.pictures.draw import draw
from ci.pictures.source import Range, read_panels, substitute
from ci.pictures.units import format_value
from observe.synthetic import client
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.observe.bundled import list_panels

Json = dict[str, Any]

FOLDER = charts_dir().parent / "dashboards"
FILES = sorted(FOLDER.glob("*.json"))
HOUR = Range(start=1_700_000_000, end=1_700_003_600, step=60)


def dashboard(name: str) -> Json:
    found: Json = json.loads((FOLDER / f"{name}.json").read_text())
    return found


@pytest.mark.parametrize("name", [file.stem for file in FILES])
def test_picture_is_drawn_and_nothing_is_empty_when_each_query_has_data(name: str, tmp_path: Path) -> None:
    found = dashboard(name)
    panels = read_panels(client(), found, HOUR, {})
    draw(found, panels, tmp_path / "picture.png")
    height, width, *_ = imread(tmp_path / "picture.png").shape
    assert width > 1400
    assert height > 500
    result = report(found, panels, {})
    assert result.is_good
    assert result.panels == result.with_data == len([each for each in list_panels(found) if each["type"] != "row"])
    assert result.queries == result.queries_with_data


def test_panel_without_data_is_drawn_and_reported(tmp_path: Path) -> None:
    found = dashboard("service")
    panels = read_panels(client(is_empty=lambda query: "num_preemptions" in query), found, HOUR, {})
    draw(found, panels, tmp_path / "picture.png")
    result = report(found, panels, {})
    assert result.empty == {"Preemptions": ""}
    assert not result.is_good


def test_panel_without_data_is_accepted_when_a_reason_is_listed() -> None:
    found = dashboard("service")
    panels = read_panels(client(is_empty=lambda query: "num_preemptions" in query), found, HOUR, {})
    result = report(found, panels, {"service/Preempt*": "a healthy run has none"})
    assert result.empty == {"Preemptions": "a healthy run has none"}
    assert result.is_good


def test_query_without_data_beside_others_is_counted() -> None:
    found = dashboard("service")
    panels = read_panels(client(is_empty=lambda query: "rayhelm:plan_ttft_seconds" in query), found, HOUR, {})
    result = report(found, panels, {})
    assert result.with_data == result.panels
    assert result.queries_with_data == result.queries - 1


def test_query_that_prometheus_refuses_is_reported_with_its_text() -> None:
    found = dashboard("service")
    result = report(found, read_panels(client(refuses="num_preemptions"), found, HOUR, {}), {})
    assert list(result.errors) == ["Preemptions"]
    assert "parse error: made up" in result.errors["Preemptions"]
    assert "ray_vllm_num_preemptions_total" in result.errors["Preemptions"]
    assert not result.is_good


def test_panel_without_unit_is_reported() -> None:
    panel = json.loads(json.dumps(next(each for each in dashboard("service")["panels"] if each["type"] == "stat")))
    assert has_unit(panel)
    del panel["fieldConfig"]["defaults"]["unit"]
    assert not has_unit(panel)


def test_table_column_without_unit_is_reported() -> None:
    panel = json.loads(json.dumps(next(each for each in dashboard("fleet")["panels"] if each["type"] == "table")))
    assert has_unit(panel)
    for override in panel["fieldConfig"]["overrides"]:
        override["properties"] = [each for each in override["properties"] if each["id"] != "unit"]
    assert not has_unit(panel)


def test_variables_and_windows_are_replaced() -> None:
    query = 'rate(x{service=~"$service",model=~"${model}"}[$__rate_interval])'
    values = {"service": ".*", "model": "a", **HOUR.windows}
    assert substitute(query, values) == 'rate(x{service=~".*",model=~"a"}[75s])'


def test_reason_is_required_for_an_empty_panel(tmp_path: Path) -> None:
    file = tmp_path / "may-be-empty"
    file.write_text("# text\nservice/Preemptions |\n")
    with pytest.raises(SystemExit, match="service/Preemptions: has no reason"):
        read_reasons(file)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.25, "percentunit", "25 %"),
        (0.0123, "s", "12.3 ms"),
        (95, "s", "1.58 min"),
        (3 * 2**30, "bytes", "3 GiB"),
        (12.345, "reqps", "12.3 req/s"),
        (3.5, "suffix: $/h", "3.5 $/h"),
        (123456, "short", "123K"),
        (79, "none", "79"),
        (float("nan"), "s", "NaN"),
    ],
)
def test_number_is_written_with_its_unit(value: float, unit: str, text: str) -> None:
    assert format_value(value, unit) == text
