"""Errors on rows that coefficients were not fitted to, and the intervals that follow from them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, exp, log
from statistics import mean, median
from typing import NamedTuple

from performance.training import fit_rows, list_usable_rows
from rayhelm.planner.speed.coefficients import Band, Bands, SpeedCoefficients
from rayhelm.planner.speed.model import compute_speed
from rayhelm.planner.speed.neighbors import correct, find_rows
from rayhelm.planner.speed.rows import MeasuredRow, shape_of_row

__all__ = [
    "FIGURES",
    "Residual",
    "build_bands",
    "compute_coverage",
    "find_widening",
    "leave_out",
    "leave_out_row",
    "summarize",
]

Widening = tuple[float, float]
"""Factors on the logarithms of the lower and the upper end of an interval."""
FIGURES = ("tpot", "ttft", "throughput")
_TAIL = 0.04
"""Part of the rows outside of an interval on each side; below 5 %, because bands are computed from few models."""
_MOST_OUTSIDE = 0.05
"""Part of the rows of groups that were left out, on each side of the interval."""
_LEAST = 0.01
"""Smallest half width of an interval."""
_FEWEST = 12
"""Rows that a band is computed from at least; with fewer, the one of all rows is used."""


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
        shape = shape_of_row(row)
        others = [other for other in find_rows(shape) if not is_near(row, other) and other in _usable()]
        correction = correct(shape, row.load, others, row.kv_cache_dtype)
        if correction.basis == "interpolated":
            found.append(_compare(row, None, correction.tpot, correction.ttft))
    return found


def _usable() -> set[MeasuredRow]:
    return set(list_usable_rows())


def _compare(row: MeasuredRow, fitted: SpeedCoefficients | None, tpot: float, ttft: float) -> Residual:
    speed = compute_speed(shape_of_row(row), row.load, fitted)
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


def build_bands(
    figure: str,
    by_model: Sequence[Residual],
    by_gpu: Sequence[Residual],
    interpolated: Sequence[Residual],
    repeated: Sequence[float],
) -> Bands:
    """Return the intervals of a figure. `repeated`: logarithms of repeated measurements over their median."""
    calm = [residual for residual in by_model if not residual.is_queued]
    dense = [residual for residual in calm if not _has_experts(residual.row)]
    sparse = [residual for residual in calm if _has_experts(residual.row)]
    queued = [residual for residual in (*by_model, *by_gpu) if residual.is_queued]
    everything = [residual for residual in (*by_model, *by_gpu) if not residual.is_queued]
    for_models = find_widening(figure, by_model, lambda row: row.model)
    for_gpus = find_widening(figure, by_gpu, lambda row: row.gpu)
    return Bands(
        measured=_build_band(repeated),
        interpolated=_build_band(_values(figure, interpolated)),
        dense=_build_band(_values(figure, dense), for_models),
        sparse=_build_band(_values(figure, sparse), for_models),
        other_gpu=_join(
            _build_band(_values(figure, calm), for_models),
            _build_band(_values(figure, [each for each in by_gpu if not each.is_queued]), for_gpus),
        ),
        queued=_build_band(_values(figure, queued if len(queued) >= _FEWEST else everything), for_models),
    )


def find_widening(figure: str, residuals: Sequence[Residual], group: Callable[[MeasuredRow], str]) -> Widening:
    """Return the factors on the logarithms of an interval with which it holds for groups that were left out."""
    sides = []
    for side in (0, 1):
        for tenths in range(10, 40):
            widening = (tenths / 10, tenths / 10)
            if compute_coverage(figure, residuals, group, widening).outside[side] <= _MOST_OUTSIDE:
                break
        else:
            raise ValueError(f"no interval of {figure} holds the rows that were left out")
        sides.append(tenths / 10)
    return sides[0], sides[1]


class Coverage(NamedTuple):
    """How intervals hold for groups that they were not computed from."""

    inside: float
    outside: tuple[float, float]
    """Parts of the rows below and above."""
    median_width: float
    """Relative to the estimate."""


def compute_coverage(
    figure: str, residuals: Sequence[Residual], group: Callable[[MeasuredRow], str], widening: Widening
) -> Coverage:
    """Compare the rows of each group with an interval that is computed from the other groups. Rows in whose load
    requests wait have an interval of their own."""
    residuals = [residual for residual in residuals if not residual.is_queued]
    below = above = 0
    widths: list[float] = []
    for name in sorted({group(residual.row) for residual in residuals}):
        rest = [residual for residual in residuals if group(residual.row) != name]
        bands = {
            has_experts: _build_band(_values(figure, _choose_alike(rest, has_experts)), widening)
            for has_experts in (False, True)
        }
        for residual in residuals:
            value = residual.get(figure)
            if group(residual.row) == name and value is not None:
                band = bands[_has_experts(residual.row)]
                below += value < log(band.low)
                above += value > log(band.high)
                widths.append(band.high - band.low)
    count = len(widths)
    return Coverage(1 - (below + above) / count, (below / count, above / count), median(widths))


def _choose_alike(residuals: Sequence[Residual], has_experts: bool) -> Sequence[Residual]:
    alike = [residual for residual in residuals if _has_experts(residual.row) == has_experts]
    return alike if len(alike) >= _FEWEST else residuals


def summarize(figure: str, residuals: Iterable[Residual]) -> dict[str, float]:
    """Return the relative errors of the estimates, %, and the number of rows."""
    errors = sorted(abs(exp(-value) - 1) * 100 for value in _values(figure, residuals))
    if not errors:
        return {}
    return {
        "rows": len(errors),
        "median": round(median(errors), 1),
        "mean": round(mean(errors), 1),
        "p90": round(errors[min(len(errors) - 1, ceil(0.9 * len(errors)) - 1)], 1),
    }


def _values(figure: str, residuals: Iterable[Residual]) -> list[float]:
    return [value for residual in residuals if (value := residual.get(figure)) is not None]


def _build_band(values: Sequence[float], widening: Widening = (1.0, 1.0)) -> Band:
    ordered = sorted(values)
    outside = int(_TAIL * len(ordered))
    low, high = min(ordered[outside], -_LEAST) * widening[0], max(ordered[-1 - outside], _LEAST) * widening[1]
    return Band(low=round(exp(low), 3), high=round(exp(high), 3), rows=len(ordered))


def _join(first: Band, second: Band) -> Band:
    """Return the interval that contains both."""
    return Band(low=min(first.low, second.low), high=max(first.high, second.high), rows=first.rows + second.rows)


def _has_experts(row: MeasuredRow) -> bool:
    return shape_of_row(row).model.experts is not None
