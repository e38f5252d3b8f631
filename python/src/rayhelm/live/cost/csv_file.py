"""The rows for finance: one for each month and model, or for each of its tenants. Columns are a contract; new ones are
added at the end."""

import csv
import io

from rayhelm.live.cost.figures import PER_UNIT
from rayhelm.live.cost.report import CostPeriod, CostReport, CostRow, Figures, TenantShare

__all__ = ["COLUMNS", "write_csv"]

COLUMNS = (
    "month",
    "start",
    "end",
    "data_from",
    "hours",
    "hours_with_data",
    "cluster",
    "namespace",
    "service",
    "model",
    "kind",
    "currency",
    "gpu_hours",
    "cost",
    "idle_cost",
    "requests",
    "input_tokens",
    "output_tokens",
    "cost_per_request",
    "cost_per_million_input_tokens",
    "cost_per_million_output_tokens",
    "planned_gpu_hours",
    "planned_cost",
    "planned_cost_per_million_output_tokens",
    "reasons",
    "tenant",
    "tenant_share",
)


def write_csv(report: CostReport) -> str:
    """Return the rows without totals. Empty cells are unknown; dates are ISO 8601 in UTC."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for period in report.periods:
        for row in period.rows:
            cells = _cells(period, row, report.currency)
            writer.writerows([{**cells, **_tenant_cells(part)} for part in row.tenants] or [cells])
    return text.getvalue()


def _tenant_cells(part: TenantShare) -> dict[str, object]:
    """Cells that differ from those of the model. What cannot be divided is empty, so that sums over a column are those
    of the models."""
    empty = (*PER_UNIT, "requests", "planned_gpu_hours", "planned_cost", "planned_cost_per_million_output_tokens")
    return {
        **dict.fromkeys(empty),
        **{name: _round(value) for name, value in part.model_dump(exclude={"tenant", "share"}).items()},
        "tenant": _as_text(part.tenant),
        "tenant_share": _round(part.share),
    }


def _cells(period: CostPeriod, row: CostRow, currency: str) -> dict[str, object]:
    planned = row.planned or Figures()
    return {
        "month": period.month or "",
        "start": f"{period.start:%Y-%m-%dT%H:%M:%SZ}",
        "end": f"{period.end:%Y-%m-%dT%H:%M:%SZ}",
        "data_from": f"{period.data_from:%Y-%m-%dT%H:%M:%SZ}",
        "hours": period.hours,
        "hours_with_data": period.hours_with_data,
        "cluster": _as_text(row.cluster),
        "namespace": _as_text(row.namespace),
        "service": _as_text(row.service),
        "model": _as_text(row.model),
        "kind": row.kind,
        "currency": currency,
        **{name: _round(value) for name, value in row.actual.model_dump().items()},
        "idle_cost": _round(row.idle_cost),
        "planned_gpu_hours": _round(planned.gpu_hours),
        "planned_cost": _round(planned.cost),
        "planned_cost_per_million_output_tokens": _round(planned.cost_per_million_output_tokens),
        "reasons": _as_text("; ".join(reason.replace("\n", " ") for reason in row.reasons)),
    }


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _as_text(text: str) -> str:
    """A cell that spreadsheets do not evaluate: labels come from the metrics."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t") else text
