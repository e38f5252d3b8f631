"""Write a dashboard as Grafana JSON, through grafanalib. No other module imports grafanalib.

grafanalib 0.7.1 is the last release. Its panels have the form of Grafana 7 and 8, with nulls, schemaVersion 12 and
queries without a data source. So grafanalib makes the outline: dashboard, variables, rows, queries. This module keeps
the keys that Grafana 11 and 12 know, and adds `options` and `fieldConfig` in their current form (panel_options.py), so
that no migration of Grafana rewrites them.
"""

import json
import re
from typing import Any

from grafanalib import core as grafana
from grafanalib._gen import DashboardEncoder

from rayhelm.observe.bundled import RUNBOOKS
from rayhelm.observe.dashboard_model import (
    AnyPanel,
    Column,
    Dashboard,
    Heatmap,
    Line,
    StateTimeline,
    Table,
    TimeSeries,
    Variable,
)
from rayhelm.observe.panel_options import Json, field_config, options, query_name
from rayhelm.observe.variables import variables_of

__all__ = ["SCHEMA_VERSION", "TAG", "as_json"]

SCHEMA_VERSION = 41
"""That of Grafana 11.6. The migrations of Grafana 12 leave such a dashboard as it is."""
PLUGIN_VERSION = "11.6.0"
"""Without it the panels of Grafana run the migrations of version 6."""
TAG = "rayhelm"
"""Tag of all dashboards, by which they link to each other."""
COLUMNS = 24
OPEN_ROWS = 2
NO_MODEL = "they have no model, or another label for it"

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
DASHBOARD_KEYS = (
    "annotations", "description", "editable", "graphTooltip", "links", "panels", "refresh", "schemaVersion", "tags",
    "templating", "time", "timepicker", "timezone", "title", "uid", "version",
)  # fmt: skip
PANEL_KEYS = (
    "id", "type", "title", "description", "datasource", "gridPos", "links", "targets", "transformations",
    "maxDataPoints", "collapsed", "panels",
)  # fmt: skip
TARGET_KEYS = ("datasource", "expr", "format", "instant", "legendFormat", "refId")
VARIABLE_KEYS = (
    "allValue", "current", "datasource", "hide", "includeAll", "label", "multi", "name", "query", "refresh", "regex",
    "sort", "type",
)  # fmt: skip


def as_json(dashboard: Dashboard) -> Json:
    """Return the dashboard as Grafana imports it."""
    variables = variables_of(dashboard)
    has_model = any(variable.name == "model" for variable in variables)
    panels = []
    y = 0
    for row in dashboard.rows:
        panels.append(grafana.RowPanel(title=row.title, gridPos=grafana.GridPos(h=1, w=COLUMNS, x=0, y=y)))
        y += 1
        x = tallest = 0
        for panel in row.panels:
            if x + panel.width > COLUMNS:
                x, y, tallest = 0, y + tallest, 0
            panels.append(
                _outline(_with_filter_note(panel, has_model), grafana.GridPos(h=panel.height, w=panel.width, x=x, y=y))
            )
            x, tallest = x + panel.width, max(tallest, panel.height)
        y += tallest
    outline = grafana.Dashboard(
        title=dashboard.title,
        description=dashboard.description,
        uid=dashboard.uid,
        tags=[TAG],
        schemaVersion=SCHEMA_VERSION,
        graphTooltip=grafana.GRAPH_TOOLTIP_MODE_SHARED_CROSSHAIR,
        refresh=dashboard.refresh,
        time=grafana.Time(dashboard.time_range, "now"),
        timezone="browser",
        links=[grafana.DashboardLink(title="rayhelm", tags=[TAG], asDropdown=True, includeVars=True, keepTime=True)],
        templating=grafana.Templating(list=[_datasource(), *map(_variable, variables), _runbooks()]),
        panels=panels,
    ).auto_panel_ids()
    found: Json = json.loads(json.dumps(outline, cls=DashboardEncoder))
    return _current(found, dashboard)


def _with_filter_note(panel: AnyPanel, has_model: bool) -> AnyPanel:
    """Say in the description where the variable Model does not filter."""
    filtered = [bool(re.search(r"\$model\b", query.expr)) for query in panel.queries]
    if not has_model or all(filtered):
        return panel
    note = f"The filter Model does not apply{' to all series' if any(filtered) else ''}: {NO_MODEL}."
    return panel.model_copy(update={"description": f"{panel.description} {note}"})


def _outline(panel: AnyPanel, position: Any) -> Any:
    """Build the grafanalib part of a panel: its type, texts, position and queries."""
    kinds = {
        "timeseries": grafana.TimeSeries,
        "stat": grafana.Stat,
        "gauge": grafana.GaugePanel,
        "bargauge": grafana.BarGauge,
        "heatmap": grafana.Heatmap,
        "state-timeline": grafana.StateTimeline,
        "table": grafana.Table,
    }
    return kinds[panel.kind](
        title=panel.title,
        description=panel.description,
        gridPos=position,
        dataSource=DATASOURCE,
        targets=[_target(panel, number, line) for number, line in enumerate(panel.queries)],
        links=[_runbook_link(panel.runbook)] if panel.runbook else [],
        transformations=_transformations(panel) if isinstance(panel, Table) else [],
        maxDataPoints=None,
    )


def _legend(panel: AnyPanel, line: Line) -> str:
    """Return the name of each series, with cluster and namespace where the query has them: several can be selected."""
    name = line.legend or panel.title
    if not isinstance(panel, TimeSeries | StateTimeline):
        return name
    kept = re.search(r"\bby \(([^)]*)\)", line.expr)
    labels = kept[1].split(", ") if kept else []
    places = [f"{{{{{label}}}}}" for label in ("cluster", "namespace") if label in labels]
    return " ".join([name, *(place for place in places if place not in name)])


def _target(panel: AnyPanel, number: int, line: Line) -> Any:
    is_over_time = isinstance(panel, TimeSeries | Heatmap | StateTimeline)
    form = "table" if isinstance(panel, Table) else "heatmap" if isinstance(panel, Heatmap) else "time_series"
    return grafana.Target(
        expr=line.expr,
        legendFormat="{{le}}" if isinstance(panel, Heatmap) else _legend(panel, line),
        refId=query_name(number),
        format=form,
        # The latest value of a range would also be found when the series has ended.
        instant=not is_over_time,
        datasource=DATASOURCE,
    )


# -- variables -------------------------------------------------------------------------------------------------------


def _datasource() -> Any:
    return grafana.Template(name="datasource", label="Data source", type="datasource", query="prometheus")


def _variable(variable: Variable) -> Any:
    return grafana.Template(
        name=variable.name,
        label=variable.title,
        type="query",
        dataSource=DATASOURCE,
        query=f"label_values({variable.series}, {variable.label})",
        regex=variable.regex or None,
        includeAll=True,
        allValue=".*",
        multi=True,
        refresh=grafana.REFRESH_ON_TIME_RANGE_CHANGE,
        sort=grafana.SORT_ALPHA_ASC,
    )


def _runbooks() -> Any:
    return grafana.Template(name=RUNBOOKS, label="URL of docs/runbooks", type="textbox", query="")


def _runbook_link(page: str) -> Any:
    return grafana.DashboardLink(
        title="Runbook", type="link", uri=f"${{{RUNBOOKS}}}/{page}.md", icon="doc", targetBlank=True, keepTime=False
    )


# -- the current form ------------------------------------------------------------------------------------------------


def _current(found: Json, dashboard: Dashboard) -> Json:
    kept = _kept(found, DASHBOARD_KEYS)
    kept["annotations"] = {"list": [_alerts_annotation()]}
    kept["timepicker"] = {}
    kept["templating"] = {"list": [_current_variable(each) for each in found["templating"]["list"]]}
    models = iter(dashboard.panels)
    panels = [
        _current_row(each) if each["type"] == "row" else _current_panel(each, next(models)) for each in found["panels"]
    ]
    kept["panels"] = _collapse(panels)
    return kept


def _collapse(panels: list[Json]) -> list[Json]:
    """Close all rows but the first ones: Grafana asks no queries of a closed row. It keeps its panels itself."""
    kept: list[Json] = []
    rows: list[Json] = []
    for panel in panels:
        if panel["type"] == "row":
            rows.append({**panel, "collapsed": len(rows) >= OPEN_ROWS, "panels": []})
        is_inside = rows and rows[-1]["collapsed"] and panel["type"] != "row"
        target = rows[-1]["panels"] if is_inside else kept
        target.append(rows[-1] if panel["type"] == "row" else panel)
    return kept


def _kept(found: Json, keys: tuple[str, ...]) -> Json:
    """Those keys alone, without nulls."""
    return {key: _without_nulls(found[key]) for key in keys if found.get(key) is not None}


def _without_nulls(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without_nulls(value) for key, value in node.items() if value is not None}
    if isinstance(node, list):
        return [_without_nulls(item) for item in node]
    return node


def _alerts_annotation() -> Json:
    return {
        "builtIn": 1,
        "datasource": {"type": "grafana", "uid": "-- Grafana --"},
        "enable": True,
        "hide": True,
        "iconColor": "rgba(0, 211, 255, 1)",
        "name": "Annotations & Alerts",
        "type": "dashboard",
    }


def _current_variable(found: Json) -> Json:
    kept = _kept(found, VARIABLE_KEYS)
    del kept["current"]
    if found["type"] == "query":
        kept["current"] = {"selected": True, "text": ["All"], "value": ["$__all"]}
        kept["query"] = {"qryType": 1, "query": found["query"], "refId": "variable"}
        return kept
    for key in ("includeAll", "multi", "sort", "refresh"):
        del kept[key]
    return kept


def _current_row(found: Json) -> Json:
    return {key: found[key] for key in ("id", "type", "title", "gridPos", "collapsed", "panels")}


def _current_panel(found: Json, panel: AnyPanel) -> Json:
    kept = _kept(found, PANEL_KEYS)
    if not kept["links"]:
        del kept["links"]
    if not kept["transformations"]:
        del kept["transformations"]
    kept["targets"] = [_current_target(each) for each in found["targets"]]
    kept["pluginVersion"] = PLUGIN_VERSION
    kept["fieldConfig"] = field_config(panel)
    kept["options"] = options(panel)
    return kept


def _current_target(found: Json) -> Json:
    kept = _kept(found, TARGET_KEYS)
    return {**kept, "editorMode": "code", "range": not found["instant"]}


# -- tables ----------------------------------------------------------------------------------------------------------


def _sources(panel: Table) -> dict[str, Column]:
    """Columns by the name of their field before it is renamed."""
    numbers = iter(range(len(panel.queries)))
    several = len(panel.queries) > 1
    sources = {}
    for column in panel.columns:
        value = f"Value #{query_name(next(numbers))}" if column.line and several else "Value"
        sources[column.label or value] = column
    return sources


def _transformations(panel: Table) -> list[Json]:
    """Join the queries by their labels, and name and order the columns."""
    sources = _sources(panel)
    return [
        {"id": "merge", "options": {}},
        {"id": "filterFieldsByName", "options": {"include": {"names": list(sources)}}},
        {
            "id": "organize",
            "options": {
                "excludeByName": {},
                "indexByName": {name: index for index, name in enumerate(sources)},
                "renameByName": {name: column.header for name, column in sources.items()},
            },
        },
    ]
