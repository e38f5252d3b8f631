"""Each dashboard is what Grafana reads: keys, values, grid, variables, texts. Grafana itself does not run here."""

import json
import re
from itertools import combinations
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import Dashboard as GrafanaDashboard

from observe.grafana_schema import DashboardJson
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.facts.metrics import exporter_of
from rayhelm.observe.bundled import list_panels
from rayhelm.observe.dashboards import load_dashboards
from rayhelm.observe.panel_options import UNITS
from rayhelm.observe.panels import as_json
from rayhelm.observe.queries.labels import TARGET_LABELS

Json = dict[str, Any]

NAMES = sorted(load_dashboards())
RUNBOOKS = charts_dir().parent / "docs/runbooks"
JSON = {name: as_json(dashboard) for name, dashboard in load_dashboards().items()}


@pytest.fixture(params=NAMES)
def found(request: pytest.FixtureRequest) -> Json:
    dashboard: Json = JSON[request.param]
    return dashboard


def panels(dashboard: Json) -> list[Json]:
    return [panel for panel in list_panels(dashboard) if panel["type"] != "row"]


def name_of(dashboard: Json) -> str:
    name: str = dashboard["uid"].removeprefix("rayhelm-")
    return name


def losses(given: Any, back: Any, path: str = "") -> list[str]:
    """Paths whose value is lost or differs."""
    if isinstance(given, dict) and isinstance(back, dict):
        gone = [f"{path}/{key}" for key in given.keys() - back.keys()]
        return gone + [
            text for key in given.keys() & back.keys() for text in losses(given[key], back[key], f"{path}/{key}")
        ]
    if isinstance(given, list) and isinstance(back, list) and len(given) == len(back):
        return [
            text
            for index, pair in enumerate(zip(given, back, strict=True))
            for text in losses(*pair, f"{path}/{index}")
        ]
    return [] if given == back else [path]


def through_grafana(dashboard: Json) -> Json:
    """Read by Grafana's own types of 11.6, and written again."""
    register_default_plugins()
    back: Json = json.loads(JSONEncoder().encode(GrafanaDashboard.from_json(dashboard)))
    return back


def test_all_six_dashboards_exist() -> None:
    assert set(NAMES) >= {"autoscaling", "fleet", "gateway", "gpu", "ray-cluster", "service"}


def test_module_name_is_the_name_of_the_dashboard() -> None:
    assert all(name == dashboard.name for name, dashboard in load_dashboards().items())


def test_dashboard_has_only_keys_and_values_that_the_schema_lists(found: Json) -> None:
    DashboardJson.model_validate(found)


def test_dashboard_is_read_by_grafana_without_loss(found: Json) -> None:
    assert losses(found, through_grafana(found)) == []


@pytest.mark.parametrize(
    "path", [("panels", 1, "options"), ("panels", 1, "fieldConfig", "defaults"), ("panels", 1), ()]
)
def test_round_trip_reports_a_key_that_grafana_does_not_know(path: tuple[Any, ...]) -> None:
    changed = json.loads(json.dumps(JSON["service"]))
    node = changed
    for key in path:
        node = node[key]
    node["unknownKey"] = "x"
    assert losses(changed, through_grafana(changed)) == ["/" + "/".join(map(str, [*path, "unknownKey"]))]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("panels", 1, "gridPos"), "nonsense"),
        (("panels", 1, "options", "colorMode"), "sideways"),
        (("panels", 1, "fieldConfig", "defaults", "thresholds", "steps"), []),
        (("panels", 1, "description"), ""),
        (("panels", 1, "fieldConfig", "defaults", "unit"), ""),
        (("schemaVersion",), 12),
    ],
)
def test_schema_refuses_a_value_that_the_round_trip_accepts(path: tuple[Any, ...], value: Any) -> None:
    changed = json.loads(json.dumps(JSON["service"]))
    node = changed
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    with pytest.raises(ValueError, match=str(path[-1])):
        DashboardJson.model_validate(changed)


def test_panels_do_not_overlap_and_stay_in_the_grid(found: Json) -> None:
    cells = [(panel["title"], panel["gridPos"]) for panel in list_panels(found)]
    assert all(place["x"] + place["w"] <= 24 for _, place in cells)
    for (one, a), (other, b) in combinations(cells, 2):
        apart = (
            a["x"] + a["w"] <= b["x"]
            or b["x"] + b["w"] <= a["x"]
            or a["y"] + a["h"] <= b["y"]
            or b["y"] + b["h"] <= a["y"]
        )
        assert apart, f"{one} and {other}"


def test_panel_ids_and_titles_within_a_row_are_unique(found: Json) -> None:
    ids = [panel["id"] for panel in list_panels(found)]
    assert len(set(ids)) == len(ids)
    titles = [(row.title, panel.title) for row in load_dashboards()[name_of(found)].rows for panel in row.panels]
    assert len(set(titles)) == len(titles)


def test_uids_are_unique() -> None:
    assert len({dashboard["uid"] for dashboard in JSON.values()}) == len(JSON)


def test_every_variable_that_is_used_exists_and_every_variable_is_used(found: Json) -> None:
    texts = json.dumps([found["panels"], [each for each in found["templating"]["list"] if each["type"] == "query"]])
    pattern = re.compile(r"\$(?:{(\w+)|(\w+))")
    used = {name[1] or name[2] for name in pattern.finditer(texts)} - {"1"}  # a group in `label_replace`
    builtin = {name for name in used if name.startswith("__")}
    assert builtin <= {"__rate_interval", "__value", "__url_time_range", "__all"}
    assert used - builtin == {each["name"] for each in found["templating"]["list"]}


def test_every_query_of_a_variable_reads_an_existing_label_of_an_existing_metric(found: Json) -> None:
    for variable in found["templating"]["list"]:
        if variable["type"] != "query":
            continue
        values = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
        assert values, variable["query"]["query"]
        name = values[1].partition("{")[0]
        exporter = exporter_of(name)
        assert values[2] in exporter.labels_of(name) | TARGET_LABELS[exporter.scraped], variable["name"]


def test_legend_names_only_labels_that_the_query_keeps(found: Json) -> None:
    for panel in panels(found):
        for target in panel["targets"]:
            for label in re.findall(r"{{(\w+)}}", target["legendFormat"]):
                assert re.search(rf"\b{label}\b", target["expr"]), f"{panel['title']}: {label}"


def test_legend_over_time_names_cluster_and_namespace_of_the_query(found: Json) -> None:
    for panel in panels(found):
        for target in panel["targets"] if panel["type"] == "timeseries" else []:
            if re.search(r"by \(cluster, namespace\b", target["expr"]):
                assert {"cluster", "namespace"} <= set(re.findall(r"{{(\w+)}}", target["legendFormat"])), panel["title"]


def test_columns_of_a_table_are_labels_of_each_query(found: Json) -> None:
    for name, dashboard in load_dashboards().items():
        for panel in dashboard.panels:
            if panel.kind != "table":
                continue
            wanted = {column.label for column in panel.columns if column.label}
            for each in panel.queries:
                assert all(re.search(rf"\b{label}\b", each.expr) for label in wanted), (
                    f"{name}: {panel.title}: {each.expr}"
                )


def test_units_are_grafana_s_or_texts_behind_the_number() -> None:
    known = {value for name, value in vars(units).items() if isinstance(value, str) and not name.startswith("_")}
    assert {unit for unit in UNITS.values() if not unit.startswith("suffix: ")} <= known


def test_code_values_have_a_text_or_an_explanation(found: Json) -> None:
    for panel in panels(found):
        defaults = panel["fieldConfig"]["defaults"]
        if defaults["unit"] == "none" and panel["type"] != "table":
            assert defaults["mappings"] or "code" in panel["description"], panel["title"]


def test_dashboards_link_to_each_other(found: Json) -> None:
    (link,) = found["links"]
    assert link["type"] == "dashboards"
    assert link["tags"] == found["tags"] == ["rayhelm"]
    assert link["includeVars"]
    assert link["keepTime"]


def test_links_of_columns_open_existing_dashboards_with_existing_variables() -> None:
    links = re.findall(r'"/d/([a-z-]+)\?var-(\w+)=', json.dumps(list(JSON.values())))
    assert links
    for uid, variable in links:
        (target,) = [dashboard for dashboard in JSON.values() if dashboard["uid"] == uid]
        assert variable in {each["name"] for each in target["templating"]["list"]}


def test_runbook_links_have_a_page(found: Json) -> None:
    linked = {link["url"].removeprefix("${runbooks}/") for panel in panels(found) for link in panel.get("links", [])}
    assert linked
    assert linked <= {path.name for path in RUNBOOKS.glob("*.md")}


def test_panel_says_where_the_model_filter_does_not_apply(found: Json) -> None:
    has_model = any(variable["name"] == "model" for variable in found["templating"]["list"])
    for panel in panels(found):
        is_filtered = all("$model" in target["expr"] for target in panel["targets"])
        says_so = "The filter Model does not apply" in panel["description"]
        assert says_so == (has_model and not is_filtered), panel["title"]


@pytest.mark.parametrize(("name", "title"), [("gateway", "Responses by class"), ("service", "Requests by status")])
def test_server_errors_are_red(name: str, title: str) -> None:
    panel = next(panel for panel in panels(JSON[name]) if panel["title"] == title)
    (red,) = (each for each in panel["fieldConfig"]["overrides"] if each["matcher"]["options"] == "/^5/")
    assert red["properties"] == [{"id": "color", "value": {"mode": "fixed", "fixedColor": "red"}}]


def test_rows_below_the_first_two_are_collapsed(found: Json) -> None:
    rows = [panel for panel in found["panels"] if panel["type"] == "row"]
    assert [row["collapsed"] for row in rows] == [number >= 2 for number in range(len(rows))]
    assert all(bool(row["panels"]) == row["collapsed"] for row in rows)
