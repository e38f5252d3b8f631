"""Errors on rows that coefficients were not fitted to."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, log
from statistics import mean, median

from performance.training import fit_rows, list_usable_rows
from rayhelm.planner.speed.coefficients import SpeedCoefficients
from rayhelm.planner.speed.model import compute_speed
from rayhelm.planner.speed.neighbors import correct, find_rows
from rayhelm.planner.speed.rows import MeasuredRow, replica_of_row

__all__ = ["FIGURES", "Residual", "leave_out", "leave_out_row", "list_values", "summarize"]

FIGURES = ("tpot", "ttft", "throughput")


@dataclass(frozen=True)
class Residual:
    """Logarithms of measured over estimated figures of one row."""

    row: MeasuredRow
    tpot: float
    ttft: float | None
    throughput: float | None
    is_queued: bool

    def get(self, figure: str) -> float | None:
        value: float | None = getattr(self, figure)
        return value

    @cached_property
    def has_experts(self) -> bool:
        return replica_of_row(self.row).model.experts is not None


def leave_out(group: Callable[[MeasuredRow], str]) -> list[Residual]:
    """Return the residuals of each group of rows with coefficients that are fitted to all others."""
    rows = list_usable_rows()
    found: list[Residual] = []
    for name in sorted({group(row) for row in rows}):
        fitted = fit_rows([row for row in rows if group(row) != name])
        found += [_compare(row, fitted, 0.0, 0.0) for row in rows if group(row) == name]
    return found


def leave_out_row(is_near: Callable[[MeasuredRow, MeasuredRow], bool]) -> list[Residual]:
    """Return the residuals of each row, corrected by the rows of its model and GPU that are not near it."""
    found = []
    for row in list_usable_rows():
        replica = replica_of_row(row)
        others = [other for other in find_rows(replica) if not is_near(row, other) and other in _usable()]
        correction = correct(replica, row.load, others, row.kv_cache_dtype)
        if correction.basis == "interpolated":
            found.append(_compare(row, None, correction.tpot, correction.ttft))
    return found


def _usable() -> set[MeasuredRow]:
    return set(list_usable_rows())


def _compare(row: MeasuredRow, fitted: SpeedCoefficients | None, tpot: float, ttft: float) -> Residual:
    speed = compute_speed(replica_of_row(row), row.load, fitted)
    step, first = speed.tpot_s * exp(tpot), speed.ttft_s * exp(ttft)
    measured = row.ttft_s
    longer = row.load.output_tokens - 1
    return Residual(
        row=row,
        tpot=log(row.tpot_s / step),
        ttft=log(measured / first) if measured else None,
        throughput=log((first + longer * step) / (measured + longer * row.tpot_s)) if measured else None,
        is_queued=bool(speed.limit),
    )


def summarize(figure: str, residuals: Iterable[Residual]) -> dict[str, float]:
    """Return the relative errors of the estimates, %, and the number of rows."""
    errors = sorted(abs(exp(-value) - 1) * 100 for value in list_values(figure, residuals))
    if not errors:
        return {}
    return {
        "rows": len(errors),
        "median": round(median(errors), 1),
        "mean": round(mean(errors), 1),
        "p90": round(errors[min(len(errors) - 1, ceil(0.9 * len(errors)) - 1)], 1),
    }


def list_values(figure: str, residuals: Iterable[Residual]) -> list[float]:
    return [value for residual in residuals if (value := residual.get(figure)) is not None]
