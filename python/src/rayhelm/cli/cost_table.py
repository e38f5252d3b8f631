"""The table of `rayhelm cost`."""

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from rayhelm.live.cost.report import CostPeriod, CostReport, CostRow, Figures, TenantShare

__all__ = ["build_cost_table"]

_NAMES = {"free": "(no replica)", "shared": "(several models)", "total": ""}
_COLUMNS = (
    "GPU-hours",
    "cost\nUSD",
    "idle\nUSD",
    "requests",
    "input\nMtokens",
    "output\nMtokens",
    "USD per\n1k requests",
    "USD per\nM input",
    "USD per\nM output",
)


def build_cost_table(period: CostPeriod, report: CostReport) -> Table:
    """The rows of a period. With a fleet, each has the plan's figures and the difference below it."""
    begin, end = (f"{moment:%Y-%m-%d %H:%M}" for moment in (period.start, period.end))
    partial = f" · data of {period.hours_with_data} of {period.hours} hours" if period.is_partial else ""
    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        title=f"{period.month or 'costs'} · {begin} to {end} UTC{partial}",
        title_justify="left",
    )
    for column in ("service", "model"):
        table.add_column(column, overflow="fold")
    for column in _COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    for row in (*period.rows, period.total):
        _add_row(table, row, report)
    return table


def _add_row(table: Table, row: CostRow, report: CostReport) -> None:
    service = "total" if row.kind == "total" else row.service
    cells = _list_cells(row.actual, row.idle_cost)
    if row.kind in ("free", "shared"):
        # GPUs alone: they have no requests.
        cells[3:] = ["-"] * len(cells[3:])
    table.add_row(Text(service), Text(row.model or _NAMES[row.kind]), *cells)
    for part in row.tenants:
        table.add_row("", Text(f"  {part.tenant}"), *_list_tenant_cells(part))
    if report.fleet and row.planned:
        table.add_row("", "  plan", *_list_cells(row.planned, None, "-"), style="dim")
    if report.fleet and row.difference_percent:
        table.add_row("", "  difference", *_list_percents(row.difference_percent), style="dim")


def _list_cells(figures: Figures, idle: float | None, no_idle: str = "?") -> list[str]:
    per_request = figures.cost_per_request
    return [
        _number(figures.gpu_hours, 1),
        _number(figures.cost, 2),
        no_idle if idle is None else _number(idle, 2),
        _number(figures.requests, 0),
        _number(_divide(figures.input_tokens), 3),
        _number(_divide(figures.output_tokens), 3),
        _number(None if per_request is None else per_request * 1000, 3),
        _number(figures.cost_per_million_input_tokens, 3),
        _number(figures.cost_per_million_output_tokens, 3),
    ]


def _list_tenant_cells(part: TenantShare) -> list[str]:
    """Requests, and costs of a request and of a token, are known by model only."""
    counts = [_number(_divide(part.input_tokens), 3), _number(_divide(part.output_tokens), 3)]
    costs = [_number(part.gpu_hours, 1), _number(part.cost, 2), _number(part.idle_cost, 2)]
    return [*costs, "-", *counts, "-", "-", "-"]


def _list_percents(difference: Figures) -> list[str]:
    values = [difference.gpu_hours, difference.cost, None, difference.requests, difference.input_tokens]
    values += [
        difference.output_tokens,
        difference.cost_per_request,
        difference.cost_per_million_input_tokens,
        difference.cost_per_million_output_tokens,
    ]
    return ["-" if value is None else f"{value:+,.1f} %" for value in values]


def _divide(tokens: float | None) -> float | None:
    return None if tokens is None else tokens / 1e6


def _number(value: float | None, digits: int) -> str:
    return "?" if value is None else f"{value:,.{digits}f}"
