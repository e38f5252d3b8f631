"""Fit the speed model, check it on rows that were left out, and write coefficients, intervals and errors.

PYTHONPATH=benchmarks python -m performance [--check]
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from math import log
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from performance.intervals import build_bands, compute_coverage, find_widening
from performance.other_sources import cross_validate, fit_factors, list_cases, widen
from performance.training import MOST_IN_FLIGHT, fit_rows, list_usable_rows
from performance.validation import FIGURES, Residual, leave_out, leave_out_row, summarize
from rayhelm.planner.speed.coefficients import SpeedCoefficients, load_coefficients
from rayhelm.planner.speed.rows import MeasuredRow, load_rows

ROOT = Path(__file__).parents[2]
SPEED = ROOT / "python/src/rayhelm/data/performance/speed.yaml"
RESULT = Path(__file__).parent / "result.yaml"
HEADER = "# Written by `make fit-performance`: coefficients of the speed model, its intervals and its errors.\n"
RESULT_HEADER = "# Written by `make fit-performance`: errors, rows inside the intervals, and widths of these, in %.\n"


def main(is_check: bool) -> int:
    if not is_check:
        _store_coefficients()
    fitted, result = fit()
    written = {
        SPEED: HEADER + _dump(fitted.model_dump(mode="json")),
        RESULT: RESULT_HEADER + _dump(result),
    }
    if is_check:
        stale = [path.name for path, text in written.items() if path.read_text() != text]
        print("stale: " + ", ".join(stale) if stale else "current")
        return 1 if stale else 0
    for path, text in written.items():
        path.write_text(text)
    print(_dump(result["errors"]), end="")
    return 0


def _store_coefficients() -> None:
    """Write new coefficients with the old intervals: measured rows correct the model that is stored."""
    new = _round(fit_rows(list_usable_rows()))
    data = yaml.safe_load(SPEED.read_text()) | {"tpot": new.tpot, "ttft": new.ttft}
    SPEED.write_text(HEADER + _dump(data))
    load_coefficients.cache_clear()


def fit() -> tuple[SpeedCoefficients, dict[str, Any]]:
    """Return the coefficients with their intervals, and the report."""
    rows = list_usable_rows()
    fitted = _round(fit_rows(rows))
    by_model, by_gpu = leave_out(lambda row: row.model), leave_out(lambda row: row.gpu)
    by_load = leave_out_row(_is_same_load)
    by_split = leave_out_row(lambda row, other: row.shape.tp == other.shape.tp)
    bands = {
        figure: build_bands(figure, by_model, by_gpu, [*by_load, *by_split], list(_list_repeats(figure, rows)))
        for figure in FIGURES
    }
    cases = list_cases()
    factors = fit_factors(cases)
    other_sources = cross_validate(bands, cases)
    bands = {figure: widen(figure, bands[figure], cases, factors) for figure in FIGURES}
    errors = {
        "model_left_out": _report(by_model, lambda row: row.model),
        "gpu_left_out": _report(by_gpu, lambda row: row.gpu),
        "load_left_out": _report(by_load, lambda row: row.model),
        "split_left_out": _report(by_split, lambda row: row.model),
    }
    coverage = {
        figure: {
            "model_left_out": _cover(figure, by_model, lambda row: row.model),
            "gpu_left_out": _cover(figure, by_gpu, lambda row: row.gpu),
        }
        for figure in FIGURES
    }
    total = {figure: errors["model_left_out"]["all"][figure] for figure in FIGURES}
    sentences = {
        figure: f"median {total[figure]['median']:.0f} %, mean {total[figure]['mean']:.0f} % over"
        f" {total[figure]['rows']} measured rows of models that were left out of the fit"
        for figure in FIGURES
    }
    fitted = fitted.model_copy(
        update={
            "source": f"fit to {len(rows)} rows of data/performance/measured.csv",
            "saturation_factor": factors.saturation,
            "wide_experts_factor": factors.wide_experts,
            "tpot_bands": bands["tpot"],
            "ttft_bands": bands["ttft"],
            "throughput_bands": bands["throughput"],
            "errors": sentences,
        }
    )
    left_out = len(load_rows()) - len(rows)
    why = (
        f"{left_out} rows with more than {MOST_IN_FLIGHT} requests in flight: limited by settings that they do not"
        " record"
    )
    return fitted, {
        "rows": len(rows),
        "rows_left_out": why,
        "coverage": coverage,
        "other_sources": other_sources,
        "errors": errors,
    }


def _cover(figure: str, residuals: Sequence[Residual], group: Callable[[MeasuredRow], str]) -> dict[str, Any]:
    widening = find_widening(figure, residuals, group)
    found = compute_coverage(figure, residuals, group, widening)
    return {
        "inside": round(100 * found.inside, 1),
        "inside_dense": round(100 * found.dense, 1),
        "inside_sparse": round(100 * found.sparse, 1),
        "below": round(100 * found.below, 1),
        "above": round(100 * found.above, 1),
        "median_width": round(100 * found.median_width, 1),
        "widening": list(widening),
    }


def _report(residuals: Sequence[Residual], group: Callable[[MeasuredRow], str]) -> dict[str, Any]:
    def summarize_all(chosen: Sequence[Residual]) -> dict[str, Any]:
        return {figure: found for figure in FIGURES if (found := summarize(figure, chosen))}

    dense = [residual for residual in residuals if not residual.has_experts]
    classes = {"all": residuals, "dense": dense, "sparse": [each for each in residuals if each not in dense]}
    by_name = {
        name: [residual for residual in residuals if group(residual.row) == name]
        for name in sorted({group(residual.row) for residual in residuals})
    }
    return {name: summarize_all(chosen) for name, chosen in (classes | by_name).items()}


def _is_same_load(row: MeasuredRow, other: MeasuredRow) -> bool:
    return row.shape.tp == other.shape.tp and row.load == other.load


def _list_repeats(figure: str, rows: Sequence[MeasuredRow]) -> list[float]:
    """Return the logarithms of measurements of one setting over their median."""
    groups: dict[object, list[float]] = defaultdict(list)
    for row in rows:
        if row.ttft_s is None:
            continue
        value = {
            "tpot": row.tpot_s,
            "ttft": row.ttft_s,
            "throughput": 1 / (row.ttft_s + (row.load.output_tokens - 1) * row.tpot_s),
        }[figure]
        groups[row.model, row.weights, row.gpu, row.shape.tp, row.shape.has_expert_parallel, row.load].append(value)
    return [log(value / median(group)) for group in groups.values() if len(group) > 1 for value in group]


def _round(fitted: SpeedCoefficients) -> SpeedCoefficients:
    """Round to four digits, so that the last bits of a processor do not change the file."""

    def short(values: dict[str, float]) -> dict[str, float]:
        return {name: float(f"{value:.4g}") for name, value in values.items()}

    return fitted.model_copy(update={"tpot": short(fitted.tpot), "ttft": short(fitted.ttft)})


def _dump(data: Any) -> str:
    return yaml.safe_dump(data, sort_keys=False, width=120)


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
