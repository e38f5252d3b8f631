"""What a dashboard consists of. Files in `observability/dashboards` fill these models; `panels.py` writes them as JSON.

Nothing here imports grafanalib, so a dashboard can be checked without it.
"""

from inspect import signature
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from rayhelm.facts.closed import Closed
from rayhelm.observe.queries import Query, Scope, Unit

__all__ = [
    "AnyPanel",
    "BarGauge",
    "Color",
    "Column",
    "Dashboard",
    "Gauge",
    "Heatmap",
    "Line",
    "Panel",
    "Queried",
    "Row",
    "Stat",
    "State",
    "StateTimeline",
    "Table",
    "Threshold",
    "TimeSeries",
    "Variable",
    "falling",
    "informational",
    "line",
    "rising",
]

Text = Annotated[str, Field(min_length=1)]
Sentence = Annotated[str, Field(min_length=20, pattern=r"\.$")]
"""At least one sentence."""
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
Color = Literal["green", "yellow", "orange", "red", "blue", "purple", "text"]
"""Named colors of Grafana; `text` is gray in its themes."""


class Threshold(Closed):
    """From this value on, a value has this color."""

    color: Color
    value: float | None = None
    """None for the first threshold, which has no lower end."""


Thresholds = Annotated[tuple[Threshold, ...], Field(min_length=2)]


def rising(warning: float, critical: float) -> tuple[Threshold, ...]:
    """Thresholds of a value that is bad when it is high."""
    return (
        Threshold(color="green"),
        Threshold(color="orange", value=warning),
        Threshold(color="red", value=critical),
    )


def falling(critical: float, warning: float) -> tuple[Threshold, ...]:
    """Thresholds of a value that is bad when it is low."""
    return (
        Threshold(color="red"),
        Threshold(color="orange", value=critical),
        Threshold(color="green", value=warning),
    )


def informational(above: float = 0) -> tuple[Threshold, ...]:
    """Thresholds of a value that is neither good nor bad: blue above `above`, gray at it and below."""
    return (Threshold(color="text"), Threshold(color="blue", value=above + 1e-9))


class State(Closed):
    """Text and color of one value, for values that are codes."""

    value: float
    text: Text
    color: Color


class Line(Closed):
    """A query of a panel."""

    expr: Text
    """PromQL from `rayhelm.observe.queries`."""
    legend: str = ""
    """Name of each series: `{{model}}` is its label; empty for a single value that the title names."""
    is_planned: bool = False
    """A figure of the plan or a limit: drawn dashed, without color of its own."""
    unit: Unit


WINDOW = "$__rate_interval"
"""Grafana's window: at least four scrapes, and no gaps between two points."""


def line(
    query: Query[...], legend: str = "", *, is_planned: bool = False, scope: Scope | None = None, **arguments: Any
) -> Line:
    """Return a query. Without a `scope` it has all variables of the dashboard, and without a `window` Grafana's."""
    if "window" in signature(query.build).parameters:
        arguments.setdefault("window", WINDOW)
    expr = query(scope or Scope.dashboard(), **arguments)
    return Line(expr=expr, legend=legend, is_planned=is_planned, unit=query.unit)


class Column(Closed):
    """A column of a table: a label, or the value of a query."""

    header: Text
    label: str = ""
    """Label of the series; empty if the column is the value of `line`."""
    line: Line | None = None
    """Query of the column."""
    thresholds: tuple[Threshold, ...] = ()
    """Colors of the values; empty for none."""
    states: tuple[State, ...] = ()
    link: str = ""
    """Name of the dashboard that a click on the value opens, with the row's namespace and service."""
    opens_runbook: bool = False
    """A click on the value, the name of an alert, opens its runbook."""

    @model_validator(mode="after")
    def _is_label_or_query(self) -> Self:
        if bool(self.label) == bool(self.line):
            raise ValueError(f"column {self.header}: set exactly one of label and line")
        return self


class Panel(Closed):
    """What all panels have."""

    kind: str
    title: Text
    description: Sentence
    """What the panel shows, and what to look at when it is not as it should be."""
    thresholds: Thresholds
    width: Annotated[int, Field(ge=2, le=24)]
    """Columns, of 24."""
    height: Annotated[int, Field(ge=3, le=24)]
    """Grid rows of 30 pixels."""
    decimals: Annotated[int, Field(ge=0, le=6)] | None = None
    minimum: float | None = None
    maximum: float | None = None
    states: tuple[State, ...] = ()
    """Texts of the values that are codes."""
    runbook: str = ""
    """Page of docs/runbooks that the panel links to, without `.md`."""
    no_value: str = ""
    """Text in place of `No data`, where that is a normal state."""

    @model_validator(mode="after")
    def _has_thresholds_in_order(self) -> Self:
        first, *rest = self.thresholds
        values = [step.value for step in rest if step.value is not None]
        if first.value is not None or len(values) != len(rest):
            raise ValueError(f"panel {self.title}: the first threshold, and no other, has no value")
        if any(low >= high for low, high in pairwise(values)):
            raise ValueError(f"panel {self.title}: thresholds must rise (found {values})")
        return self

    @property
    def queries(self) -> tuple[Line, ...]:
        raise NotImplementedError


class Queried(Panel):
    """Panels that show all of their queries in one way."""

    lines: Annotated[tuple[Line, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _has_one_unit(self) -> Self:
        if len(units := {line.unit for line in self.lines}) > 1:
            raise ValueError(f"panel {self.title}: its queries have several units ({', '.join(sorted(units))})")
        return self

    @property
    def unit(self) -> Unit:
        return self.lines[0].unit

    @property
    def queries(self) -> tuple[Line, ...]:
        return self.lines


class TimeSeries(Queried):
    """Lines over time."""

    kind: Literal["timeseries"] = "timeseries"
    width: Annotated[int, Field(ge=2, le=24)] = 8
    height: Annotated[int, Field(ge=3, le=24)] = 8
    minimum: float | None = 0
    thresholds: Thresholds = informational()
    is_stacked: bool = False
    """Areas on top of each other, for parts of a sum."""
    shows_thresholds: bool = False
    """Draw the thresholds as dashed lines."""
    is_stepped: bool = False
    """Steps in place of slopes, for counts of things."""
    is_logarithmic: bool = False
    """Equal distances for equal ratios, where a few values are thousands of times the others. Needs `minimum=None`: 0
    has no place on this axis."""

    @model_validator(mode="after")
    def _has_no_zero_on_a_logarithmic_axis(self) -> Self:
        if self.is_logarithmic and self.minimum == 0:
            raise ValueError(f"panel {self.title}: a logarithmic axis cannot begin at 0")
        return self


class Stat(Queried):
    """One number, the latest."""

    kind: Literal["stat"] = "stat"
    width: Annotated[int, Field(ge=2, le=24)] = 4
    height: Annotated[int, Field(ge=3, le=24)] = 4


class Gauge(Queried):
    """One number between two ends."""

    kind: Literal["gauge"] = "gauge"
    width: Annotated[int, Field(ge=2, le=24)] = 4
    height: Annotated[int, Field(ge=3, le=24)] = 6
    minimum: float | None = 0
    maximum: float | None = 1


class BarGauge(Queried):
    """One bar for each series, the latest value."""

    kind: Literal["bargauge"] = "bargauge"
    width: Annotated[int, Field(ge=2, le=24)] = 8
    height: Annotated[int, Field(ge=3, le=24)] = 8
    minimum: float | None = 0


class Heatmap(Queried):
    """Buckets of a histogram over time. The query has the label `le`; the unit is that of the buckets."""

    kind: Literal["heatmap"] = "heatmap"
    width: Annotated[int, Field(ge=2, le=24)] = 12
    height: Annotated[int, Field(ge=3, le=24)] = 8


class StateTimeline(Queried):
    """Codes over time, one row for each series."""

    kind: Literal["state-timeline"] = "state-timeline"
    width: Annotated[int, Field(ge=2, le=24)] = 12
    height: Annotated[int, Field(ge=3, le=24)] = 7
    states: Annotated[tuple[State, ...], Field(min_length=2)]


class Table(Panel):
    """One row for each series, the latest values. Queries are joined by the labels that they share."""

    kind: Literal["table"] = "table"
    columns: Annotated[tuple[Column, ...], Field(min_length=2)]
    width: Annotated[int, Field(ge=2, le=24)] = 24
    height: Annotated[int, Field(ge=3, le=24)] = 8

    @model_validator(mode="after")
    def _has_query_columns(self) -> Self:
        if not self.queries:
            raise ValueError(f"panel {self.title}: no column has a query")
        return self

    @property
    def queries(self) -> tuple[Line, ...]:
        return tuple(column.line for column in self.columns if column.line)


AnyPanel = TimeSeries | Stat | Gauge | BarGauge | Heatmap | StateTimeline | Table


class Row(Closed):
    """Panels below one heading, placed from left to right."""

    title: Text
    panels: Annotated[tuple[AnyPanel, ...], Field(min_length=1)]


class Variable(Closed):
    """A choice at the top of the dashboard: values of a label of series that stay when services are idle."""

    name: Annotated[str, Field(pattern="^[a-z]+$")]
    """In queries: `$name`."""
    title: Text
    label: Text
    """Label whose values are offered."""
    series: Text
    """Selector of the series."""
    regex: str = ""
    """The part of a value that is offered: its first group."""


class Dashboard(Closed):
    """A dashboard. Its name is the name of its file."""

    name: Name
    title: Text
    description: Sentence
    rows: Annotated[tuple[Row, ...], Field(min_length=1)]
    is_of_gateway: bool = False
    """Namespaces and models are those of gateways, not of services."""
    time_range: str = "now-1h"
    refresh: str = "30s"

    @property
    def uid(self) -> str:
        """Stable, so that links and re-imports find it."""
        return f"rayhelm-{self.name}"

    @property
    def panels(self) -> tuple[AnyPanel, ...]:
        return tuple(panel for row in self.rows for panel in row.panels)
