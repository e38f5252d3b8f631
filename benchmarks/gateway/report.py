"""Medians, spread, ratios."""

import statistics
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

__all__ = ["Figures", "added", "print_tables", "ratios", "summary"]

Figures = dict[str, dict[str, list[dict[str, float]]]]
"""Measurements by load, contender and round."""
LABELS = {
    "requests_per_second": "requests/s",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "cpu_us": "CPU µs per request",
    "first_p50_ms": "first token p50 ms",
    "first_p99_ms": "p99",
    "token_p50_ms": "each token p50 ms",
    "token_p99_ms": "p99",
}
MORE_IS_BETTER = "requests_per_second"


def spread(values: Sequence[float]) -> dict[str, float]:
    return {
        "median": round(statistics.median(values), 4),
        "min": round(min(values), 4),
        "max": round(max(values), 4),
    }


def summary(figures: Figures) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """Return the median, minimum and maximum of each measure."""
    return {
        load: {
            name: {measure: spread([found[measure] for found in rounds]) for measure in rounds[0]}
            for name, rounds in contenders.items()
        }
        for load, contenders in figures.items()
    }


def ratios(figures: Figures, ours: str, theirs: str) -> dict[str, dict[str, dict[str, float]]]:
    """Return the ratio of `ours` to `theirs` per round: both had the same load of the computer then."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for load, contenders in figures.items():
        if MORE_IS_BETTER not in contenders[ours][0]:
            continue
        pairs = list(zip(contenders[ours], contenders[theirs], strict=True))
        found[load] = {
            measure: spread(
                [a[measure] / b[measure] if measure == MORE_IS_BETTER else b[measure] / a[measure] for a, b in pairs]
            )
            for measure in pairs[0][0]
        }
    return found


def added(figures: Figures, bare: str, name: str) -> dict[str, dict[str, dict[str, float]]]:
    """Return milliseconds that `name` adds to a stream, per round."""
    return {
        load: {
            measure: spread([a[measure] - b[measure] for a, b in zip(found[name], found[bare], strict=True)])
            for measure in found[name][0]
        }
        for load, found in figures.items()
        if MORE_IS_BETTER not in found[name][0]
    }


def print_tables(
    result: Mapping[str, Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]], console: Console
) -> None:
    for load, contenders in result["figures"].items():
        measures = list(next(iter(contenders.values())))
        table = Table(title=load, title_justify="left")
        table.add_column("median (min to max)")
        for measure in measures:
            table.add_column(LABELS[measure], justify="right")
        for name, found in contenders.items():
            table.add_row(name, *(_text(found[measure]) for measure in measures))
        for pair, by_load in result["ratios"].items():
            if load in by_load:
                cells = [f"{_text(by_load[load][measure])} x" for measure in measures]
                table.add_row(pair, *cells, style="bold")
        for name, by_load in result["added"].items():
            if load in by_load:
                cells = [_text(by_load[load][measure]) for measure in measures]
                table.add_row(f"added by {name}", *cells, style="bold")
        console.print(table)


def _text(found: Mapping[str, float]) -> str:
    return f"{_number(found['median'])} ({_number(found['min'])} to {_number(found['max'])})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
