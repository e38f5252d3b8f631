"""`options` and `fieldConfig` of each kind of panel, as Grafana 11 and 12 write them."""

from typing import Any, assert_never

from rayhelm.observe.bundled import RUNBOOKS
from rayhelm.observe.dashboard_model import (
    AnyPanel,
    BarGauge,
    Column,
    Gauge,
    Heatmap,
    Stat,
    State,
    StateTimeline,
    Table,
    Threshold,
    TimeSeries,
)
from rayhelm.observe.queries import Unit

__all__ = ["UNITS", "Json", "field_config", "options", "query_name"]

Json = dict[str, Any]

UNITS: dict[Unit, str] = {
    "bytes": "bytes",
    "bytes/s": "binBps",
    "celsius": "celsius",
    "code": "none",
    "connections": "suffix: connections",
    "cores": "suffix: cores",
    "count": "short",
    "count/s": "ops",
    "dollars": "currencyUSD",
    "dollars/Mtoken": "suffix: $/1M tokens",
    "dollars/h": "suffix: $/h",
    "dollars/request": "suffix: $/request",
    "gpus": "suffix: GPUs",
    "hertz": "hertz",
    "joules": "joule",
    "nodes": "suffix: nodes",
    "ratio": "percentunit",
    "replicas": "suffix: replicas",
    "requests": "suffix: requests",
    "requests/s": "reqps",
    "seconds": "s",
    "servers": "suffix: endpoints",
    "state": "none",
    "tokens": "suffix: tokens",
    "tokens/s": "suffix: tok/s",
    "unix time": "dateTimeAsIso",
    "watts": "watt",
}
"""Grafana's unit for each unit of the queries."""
BY_STATUS = ("{{code}}", "{{status_code}}")
"""Legends of series by status, of which server errors are red."""
VARIABLE_OF_LABEL = {"rayhelm_dev_service": "service", "namespace": "namespace", "model_name": "model"}
"""Variable that a link sets, by the label of the column."""


def query_name(number: int) -> str:
    """Return Grafana's name of the query: A, B, C."""
    return chr(ord("A") + number)


def field_config(panel: AnyPanel) -> Json:
    """Return unit, thresholds, ends and colors, and what differs for single series or columns."""
    return {"defaults": _defaults(panel), "overrides": _overrides(panel)}


def _defaults(panel: AnyPanel) -> Json:
    optional = {"decimals": panel.decimals, "min": panel.minimum, "max": panel.maximum}
    return {
        "unit": "none" if isinstance(panel, Table) else UNITS[panel.unit],
        "color": {"mode": "palette-classic" if isinstance(panel, TimeSeries | Heatmap) else "thresholds"},
        "custom": _custom(panel),
        "mappings": _mappings(panel.states),
        "thresholds": _thresholds(panel.thresholds),
        **{key: value for key, value in optional.items() if value is not None},
        **({"noValue": panel.no_value} if panel.no_value else {}),
    }


def _thresholds(steps: tuple[Threshold, ...]) -> Json:
    return {"mode": "absolute", "steps": [{"color": step.color, "value": step.value} for step in steps]}


def _mappings(states: tuple[State, ...]) -> list[Json]:
    options = {
        f"{state.value:g}": {"text": state.text, "color": state.color, "index": index}
        for index, state in enumerate(states)
    }
    return [{"type": "value", "options": options}] if options else []


def _custom(panel: AnyPanel) -> Json:
    match panel:
        case TimeSeries():
            return {
                "drawStyle": "line",
                "lineInterpolation": "stepAfter" if panel.is_stepped else "linear",
                "lineWidth": 1,
                "fillOpacity": 30 if panel.is_stacked else 0,
                "showPoints": "never",
                "spanNulls": False,
                "stacking": {"mode": "normal" if panel.is_stacked else "none", "group": "A"},
                "thresholdsStyle": {"mode": "dashed" if panel.shows_thresholds else "off"},
                **({"scaleDistribution": {"type": "log", "log": 10}} if panel.is_logarithmic else {}),
            }
        case StateTimeline():
            return {"lineWidth": 0, "fillOpacity": 70}
        case Heatmap():
            return {"scaleDistribution": {"type": "linear"}}
        case Table():
            return {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False}
        case Stat() | Gauge() | BarGauge():
            return {}
        case _:
            assert_never(panel)


def _overrides(panel: AnyPanel) -> list[Json]:
    if isinstance(panel, Table):
        return [_column_override(column) for column in panel.columns]
    if not isinstance(panel, TimeSeries):
        return []
    planned = [
        {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [8, 6]}},
        {"id": "custom.fillOpacity", "value": 0},
        {"id": "custom.stacking", "value": {"mode": "none", "group": "A"}},
        {"id": "color", "value": {"mode": "fixed", "fixedColor": "text"}},
    ]
    refs = [query_name(number) for number, line in enumerate(panel.lines) if line.is_planned]
    overrides = [{"matcher": {"id": "byFrameRefID", "options": ref}, "properties": planned} for ref in refs]
    if any(line.legend in BY_STATUS for line in panel.lines):
        red = {"id": "color", "value": {"mode": "fixed", "fixedColor": "red"}}
        overrides.append({"matcher": {"id": "byRegexp", "options": "/^5/"}, "properties": [red]})
    return overrides


def options(panel: AnyPanel) -> Json:
    """Return the options of the kind of panel."""
    latest = {"values": False, "calcs": ["lastNotNull"], "fields": ""}
    legend = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
    match panel:
        case TimeSeries():
            return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
        case Stat():
            return {
                "colorMode": "value",
                "graphMode": "none",
                "justifyMode": "auto",
                "orientation": "auto",
                "percentChangeColorMode": "standard",
                "reduceOptions": latest,
                "showPercentChange": False,
                "textMode": "auto",
                "wideLayout": True,
            }
        case Gauge():
            return {
                "minVizHeight": 75,
                "minVizWidth": 75,
                "orientation": "auto",
                "reduceOptions": latest,
                "showThresholdLabels": False,
                "showThresholdMarkers": True,
                "sizing": "auto",
            }
        case BarGauge():
            return {
                "displayMode": "basic",
                "legend": {**legend, "showLegend": False},
                "maxVizHeight": 300,
                "minVizHeight": 16,
                "minVizWidth": 8,
                "namePlacement": "auto",
                "orientation": "horizontal",
                "reduceOptions": latest,
                "showUnfilled": True,
                "sizing": "auto",
                "valueMode": "color",
            }
        case StateTimeline():
            return {
                "alignValue": "left",
                "legend": legend,
                "mergeValues": True,
                "rowHeight": 0.8,
                "showValue": "auto",
                "tooltip": {"mode": "single", "sort": "none"},
            }
        case Heatmap():
            return _heatmap_options(panel)
        case Table():
            return {"cellHeight": "sm", "frameIndex": 0, "showHeader": True}
        case _:
            assert_never(panel)


def _heatmap_options(panel: Heatmap) -> Json:
    return {
        "calculate": False,
        "cellGap": 1,
        "color": {
            "exponent": 0.5,
            "fill": "dark-orange",
            "mode": "scheme",
            "reverse": False,
            "scale": "exponential",
            "scheme": "Oranges",
            "steps": 64,
        },
        "exemplars": {"color": "rgba(255,0,255,0.7)"},
        "filterValues": {"le": 1e-9},
        "legend": {"show": True},
        "rowsFrame": {"layout": "auto"},
        "showValue": "never",
        "tooltip": {"mode": "single", "showColorScale": False, "yHistogram": False},
        "yAxis": {"axisPlacement": "left", "reverse": False, "unit": UNITS[panel.unit]},
    }


def _column_override(column: Column) -> Json:
    properties: list[Json] = []
    if column.line:
        properties.append({"id": "unit", "value": UNITS[column.line.unit]})
    if column.states:
        properties.append({"id": "mappings", "value": _mappings(column.states)})
    if column.thresholds:
        properties.append({"id": "thresholds", "value": _thresholds(column.thresholds)})
    if column.thresholds or column.states:
        properties.append({"id": "custom.cellOptions", "value": {"type": "color-text"}})
    if column.link:
        variable = VARIABLE_OF_LABEL[column.label]
        kept = "${datasource:queryparam}&${cluster:queryparam}&${__url_time_range}"
        url = f"/d/rayhelm-{column.link}?var-{variable}=${{__value.raw}}&{kept}"
        properties.append({"id": "links", "value": [{"title": f"Open dashboard {column.link}", "url": url}]})
    if column.opens_runbook:
        url = f"${{{RUNBOOKS}}}/${{__value.raw}}.md"
        properties.append({"id": "links", "value": [{"title": "Runbook", "url": url, "targetBlank": True}]})
    return {"matcher": {"id": "byName", "options": column.header}, "properties": properties}
