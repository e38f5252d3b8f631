"""Errors of two estimates of the same rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, exp
from statistics import mean, median
from typing import Any

from performance.validation import Residual
from rayhelm.planner.speed.rows import replica_of_row

__all__ = ["Pair", "compare"]


@dataclass(frozen=True)
class Pair:
    """A measured row with both estimates."""

    ours: Residual
    answer: dict[str, Any]
    mode: str

    def get_errors(self, figure: str) -> tuple[float, float] | None:
        """Return our relative error and that of the peer, %; None if the figure was not measured."""
        row, deviation = self.ours.row, self.ours.get(figure)
        measured = row.tpot_s if figure == "tpot" else row.ttft_s
        if deviation is None or measured is None:
            return None
        return 100 * abs(exp(-deviation) - 1), 100 * abs(self.answer[f"{figure}_ms"] / 1e3 / measured - 1)


def compare(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return the errors of all rows, of some kinds of them, and by model and GPU."""
    groups: dict[str, Callable[[Pair], bool]] = {
        "all": lambda _: True,
        "dense": lambda pair: replica_of_row(pair.ours.row).model.experts is None,
        "sparse": lambda pair: replica_of_row(pair.ours.row).model.experts is not None,
        "requests fit the KV cache": lambda pair: not pair.answer["is_over_cache"] and not pair.ours.is_queued,
        **{name: _has_name(name) for name in sorted({_name(pair) for pair in pairs})},
    }
    return {name: _summarize([pair for pair in pairs if is_in(pair)]) for name, is_in in groups.items()}


def _name(pair: Pair) -> str:
    row = pair.ours.row
    return f"{row.model.partition('/')[2]} {row.weights} on {row.gpu}"


def _has_name(name: str) -> Callable[[Pair], bool]:
    return lambda pair: _name(pair) == name


def _summarize(pairs: Sequence[Pair]) -> dict[str, Any]:
    found = {}
    for figure in ("tpot", "ttft"):
        errors = [each for pair in pairs if (each := pair.get_errors(figure))]
        if errors:
            ours, theirs = zip(*errors, strict=True)
            found[figure] = {"rows": len(errors), "rayhelm": _describe(ours), "aiconfigurator": _describe(theirs)}
    return found


def _describe(errors: Sequence[float]) -> dict[str, float]:
    ordered = sorted(errors)
    return {
        "median": round(median(ordered), 1),
        "mean": round(mean(ordered), 1),
        "p90": round(ordered[ceil(0.9 * len(ordered)) - 1], 1),
    }
