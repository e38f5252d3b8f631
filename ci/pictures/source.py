"""Data of the panels, from the HTTP API of Prometheus."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from rayhelm.observe.bundled import list_panels

__all__ = ["Panel", "PrometheusError", "Range", "Result", "Series", "read_panels"]

Json = dict[str, Any]


class PrometheusError(Exception):
    """Prometheus did not answer, or refused a query."""


@dataclass(frozen=True)
class Range:
    """The time that is drawn, and the windows of queries. All in seconds."""

    start: float
    end: float
    step: float = 15
    scrape_interval: float = 15

    @property
    def windows(self) -> dict[str, str]:
        """Values of Grafana's own variables."""
        rate = max(self.step + self.scrape_interval, 4 * self.scrape_interval)
        return {
            "__rate_interval": f"{rate:.0f}s",
            "__interval": f"{self.step:.0f}s",
            "__range": f"{self.end - self.start:.0f}s",
        }


@dataclass(frozen=True)
class Series:
    """One series: its labels, times and values."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]

    @property
    def latest(self) -> float:
        return self.points[-1][1]


@dataclass(frozen=True)
class Result:
    """What one query of a panel returned."""

    target: Json
    series: tuple[Series, ...]

    def name_of(self, series: Series) -> str:
        """Return the legend of a series. Pictures are published, so addresses of nodes are replaced."""
        name = re.sub(r"{{ *(\w+) *}}", lambda label: series.labels.get(label[1], ""), self.target["legendFormat"])
        return re.sub(r"\b\d{1,3}(\.\d{1,3}){3}\b", "10.0.0.1", name)


@dataclass(frozen=True)
class Panel:
    """A panel with its data."""

    json: Json
    results: tuple[Result, ...] = ()
    error: str = ""
    rows: tuple[Mapping[str, str | float], ...] = field(default=())
    """Rows of a table, by the header of the column."""

    @property
    def is_empty(self) -> bool:
        return not any(result.series for result in self.results)


def read_panels(client: httpx.Client, dashboard: Json, during: Range, chosen: Mapping[str, str]) -> list[Panel]:
    """Run all queries of a dashboard. `chosen` are values of its variables; the others are All."""
    variables = {each["name"]: each.get("allValue", "") for each in dashboard["templating"]["list"]}
    variables |= {name: value for name, value in chosen.items() if name in variables} | during.windows
    return [_read(client, panel, during, variables) for panel in list_panels(dashboard)]


def _read(client: httpx.Client, panel: Json, during: Range, variables: Mapping[str, str]) -> Panel:
    results = []
    for target in panel.get("targets", []):
        try:
            results.append(Result(target, _query(client, target, during, variables)))
        except PrometheusError as error:
            return Panel(panel, error=f"{error}: {target['expr']}")
    rows = _rows(panel, results) if panel["type"] == "table" else ()
    return Panel(panel, tuple(results), rows=rows)


def substitute(expr: str, variables: Mapping[str, str]) -> str:
    """Return a query with the values of its variables."""
    # `$1` is a group in `label_replace`.
    return re.sub(r"\$([A-Za-z_]\w*)|\${(\w+)[^}]*}", lambda name: variables[name[1] or name[2]], expr)


def _query(client: httpx.Client, target: Json, during: Range, variables: Mapping[str, str]) -> tuple[Series, ...]:
    expr = substitute(target["expr"], variables)
    if target["instant"]:
        path, parameters = "/api/v1/query", {"query": expr, "time": f"{during.end:.3f}"}
    else:
        path = "/api/v1/query_range"
        parameters = {
            "query": expr,
            "start": f"{during.start:.3f}",
            "end": f"{during.end:.3f}",
            "step": f"{during.step:g}",
        }
    try:
        response = client.post(path, data=parameters)
        answer = response.json()
    except (httpx.HTTPError, ValueError) as error:
        raise PrometheusError(f"no answer from Prometheus ({error or type(error).__name__})") from None
    if answer.get("status") != "success":
        raise PrometheusError(str(answer.get("error", response.status_code)))
    return tuple(_series(item) for item in answer["data"]["result"])


def _series(item: Json) -> Series:
    points = item["values"] if "values" in item else [item["value"]]
    return Series(item["metric"], tuple((float(time), float(value)) for time, value in points))


def _rows(panel: Json, results: list[Result]) -> tuple[Mapping[str, str | float], ...]:
    """Do what the transformations `merge`, `filterFieldsByName` and `organize` do."""
    options = {each["id"]: each["options"] for each in panel["transformations"]}
    names = options["organize"]["renameByName"]
    kept = options["filterFieldsByName"]["include"]["names"]
    rows: dict[tuple[tuple[str, str], ...], dict[str, str | float]] = {}
    for result in results:
        value = f"Value #{result.target['refId']}" if len(results) > 1 else "Value"
        for series in result.series:
            labels = tuple(sorted((name, text) for name, text in series.labels.items() if name in kept))
            row = rows.setdefault(labels, {names[name]: text for name, text in labels})
            row[names[value]] = series.latest
    return tuple(rows[key] for key in sorted(rows))
