"""Intervals around estimates, computed from errors on rows that were left out of the fit (normalized conformal).

Errors of models with experts and of dense ones are divided by the usual error of their class, and the tails of all of
them together give the interval. Factors widen it until it holds for models or GPUs that it was not computed from
either.
"""

from collections.abc import Callable, Sequence
from itertools import product
from math import exp
from typing import NamedTuple

import numpy as np

from performance.validation import Residual, list_values
from rayhelm.planner.speed.coefficients import Band, Bands
from rayhelm.planner.speed.rows import MeasuredRow

__all__ = ["Coverage", "Widening", "build_bands", "compute_coverage", "find_widening"]

Group = Callable[[MeasuredRow], str]
Widening = tuple[float, float]
"""Factors on the logarithms of the lower and the upper end of an interval."""
_TAIL = 0.1
"""Part of the rows below, and above, the tails that are widened: far enough in that few odd rows do not move them."""
_TAIL_OF_KNOWN = 0.04
"""The same for models that were measured on this GPU, and for a queue, where the interval is not widened."""
_MOST_OUTSIDE = 0.1
"""Part of the rows of groups that were left out."""
_MOST_WORSE = 0.05
"""Part of them that is worse than the pessimistic end, which plans are tested at."""
_FACTORS = [tenths / 10 for tenths in range(10, 40)]
_LEAST = 0.01
"""Smallest half width of an interval."""
_FEWEST = 12
"""Rows of a class that its usual error is computed from at least."""


def build_bands(
    figure: str,
    by_model: Sequence[Residual],
    by_gpu: Sequence[Residual],
    interpolated: Sequence[Residual],
    repeated: Sequence[float],
) -> Bands:
    """Return the intervals of a figure, without those that other sources give (`other_sources`). `repeated`: logarithms
    of repeated measurements over their median."""
    models = _build_classes(figure, by_model, find_widening(figure, by_model, lambda row: row.model))
    gpus = _build_classes(figure, by_gpu, find_widening(figure, by_gpu, lambda row: row.gpu))
    other = _join([*models.values(), *gpus.values()])
    return Bands(
        measured=_build_band(repeated),
        interpolated=_build_band(list_values(figure, interpolated)),
        dense=models[False],
        sparse=models[True],
        other_gpu=other,
        # Assumed: a prompt crosses the links between stages once, and each output token waits for them.
        pipeline=(_join([*models.values()]) if figure == "ttft" else other).model_copy(update={"rows": 0}),
        installed=Band(low=1.0, high=1.0, rows=0),
        saturated=other,
        wide_experts=other,
        queued=_build_band(list_values(figure, [each for each in (*by_model, *by_gpu) if each.is_queued])),
    )


def find_widening(figure: str, residuals: Sequence[Residual], group: Group) -> Widening:
    """Return the factors of the narrowest interval that holds for groups that were left out."""
    left_out = _leave_out(figure, residuals, group)
    found = {widening: left_out.compute_coverage(widening) for widening in product(_FACTORS, _FACTORS)}
    holding = [widening for widening, coverage in found.items() if coverage.holds(figure)]
    if not holding:
        raise ValueError(f"no interval of {figure} holds the rows that were left out")
    return min(holding, key=lambda widening: found[widening].median_width)


class Coverage(NamedTuple):
    """How intervals hold for groups that they were not computed from. Parts of the rows."""

    inside: float
    dense: float
    """Inside, of models without experts."""
    sparse: float
    """Inside, of models with experts."""
    below: float
    above: float
    median_width: float
    """Relative to the estimate."""

    def holds(self, figure: str) -> bool:
        worse = self.below if figure == "throughput" else self.above
        return worse <= _MOST_WORSE and self.below + self.above <= _MOST_OUTSIDE


def compute_coverage(figure: str, residuals: Sequence[Residual], group: Group, widening: Widening) -> Coverage:
    """Compare the rows of each group with an interval that is computed from the other groups. Rows in whose load
    requests wait have an interval of their own."""
    return _leave_out(figure, residuals, group).compute_coverage(widening)


class _LeftOut(NamedTuple):
    """Deviations of rows, with the ends of the interval that the other groups give. All are logarithms."""

    deviations: np.ndarray
    ends: np.ndarray
    has_experts: np.ndarray

    def compute_coverage(self, widening: Widening) -> Coverage:
        ends = self.ends * np.array(widening)
        below, above = self.deviations < ends[:, 0], self.deviations > ends[:, 1]
        inside = ~(below | above)
        width = np.exp(ends[:, 1]) - np.exp(ends[:, 0])
        return Coverage(
            inside=float(inside.mean()),
            dense=float(inside[~self.has_experts].mean()),
            sparse=float(inside[self.has_experts].mean()),
            below=float(below.mean()),
            above=float(above.mean()),
            median_width=float(np.median(width)),
        )


def _leave_out(figure: str, residuals: Sequence[Residual], group: Group) -> _LeftOut:
    calm = _list_calm(figure, residuals)
    rows: list[tuple[float, tuple[float, float], bool]] = []
    for name in sorted({group(residual.row) for residual in calm}):
        tails = _find_tails(figure, [residual for residual in calm if group(residual.row) != name])
        here = [residual for residual in calm if group(residual.row) == name]
        rows += [(each.get(figure) or 0.0, tails[each.has_experts], each.has_experts) for each in here]
    deviations, ends, has_experts = zip(*rows, strict=True)
    return _LeftOut(np.array(deviations), np.array(ends), np.array(has_experts))


def _build_classes(figure: str, residuals: Sequence[Residual], widening: Widening) -> dict[bool, Band]:
    """Return the interval of dense models (False) and of those with experts (True)."""
    calm = _list_calm(figure, residuals)
    tails = _find_tails(figure, calm)
    return {
        has_experts: _round(
            low * widening[0], high * widening[1], sum(each.has_experts == has_experts for each in calm)
        )
        for has_experts, (low, high) in tails.items()
    }


def _find_tails(figure: str, calm: Sequence[Residual]) -> dict[bool, tuple[float, float]]:
    """Return the ends of the interval before it is widened, by whether a model has experts."""
    usual = _find_usual(figure, calm)
    scaled = [(each.get(figure) or 0.0) / usual[each.has_experts] for each in calm]
    low, high = _cut(scaled, _TAIL)
    return {has_experts: (low * error, high * error) for has_experts, error in usual.items()}


def _find_usual(figure: str, calm: Sequence[Residual]) -> dict[bool, float]:
    """Return the usual error of each class, halfway to that of all rows, because a class has few models."""
    overall = _average(list_values(figure, calm))
    usual = {}
    for has_experts in (False, True):
        alike = list_values(figure, [each for each in calm if each.has_experts == has_experts])
        usual[has_experts] = (_average(alike) + overall) / 2 if len(alike) >= _FEWEST else overall
    return usual


def _average(values: Sequence[float]) -> float:
    """Return the mean size, with the largest tenth cut to the next one."""
    sizes = np.abs(values)
    return float(np.minimum(sizes, np.quantile(sizes, 0.9)).mean())


def _list_calm(figure: str, residuals: Sequence[Residual]) -> list[Residual]:
    return [each for each in residuals if not each.is_queued and each.get(figure) is not None]


def _cut(values: Sequence[float], tail: float) -> tuple[float, float]:
    ordered, outside = sorted(values), int(tail * len(values))
    return min(ordered[outside], -_LEAST), max(ordered[-1 - outside], _LEAST)


def _build_band(values: Sequence[float]) -> Band:
    return _round(*_cut(values, _TAIL_OF_KNOWN), len(values))


def _round(low: float, high: float, rows: int) -> Band:
    return Band(low=round(exp(low), 3), high=round(exp(high), 3), rows=rows)


def _join(bands: Sequence[Band]) -> Band:
    """Return the interval that contains all of them."""
    return Band(
        low=min(band.low for band in bands),
        high=max(band.high for band in bands),
        rows=sum(band.rows for band in bands),
    )
