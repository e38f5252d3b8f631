"""GPU hours and first tokens in time."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = ["Run", "interpolate_gpu_hours", "list_runs", "print_summary", "summarize"]


@dataclass(frozen=True)
class Run:
    """One hour with one policy."""

    trace: str
    policy: str
    factor: float
    """Factor on the plan's target."""
    slower: float
    """Factor on all durations of the plan."""
    seed: int
    gpu_hours: float
    in_time: float
    """Share of requests with the first token in time."""
    loads: int
    """Replicas that were started after the initial ones."""


def interpolate_gpu_hours(curve: Iterable[Run], share: float) -> float | None:
    """Return the fewest GPU hours for a share of requests in time, interpolated between neighboring targets; None if no
    target reaches it."""
    points = sorted(curve, key=lambda run: run.factor, reverse=True)
    found = [run.gpu_hours for run in points if run.in_time >= share]
    for less, more in pairwise(points):
        if less.in_time < share <= more.in_time:
            part = (share - less.in_time) / (more.in_time - less.in_time)
            found.append(less.gpu_hours + part * (more.gpu_hours - less.gpu_hours))
    return min(found, default=None)


def summarize(runs: Sequence[Run], shares: Sequence[float]) -> dict[str, Any]:
    traces, policies = dict.fromkeys(run.trace for run in runs), dict.fromkeys(run.policy for run in runs)
    return {
        trace: {
            "gpu_hours_at_equal_share": {
                f"{share:.0%} in time": {policy: _equal(runs, trace, policy, share) for policy in policies}
                for share in shares
            },
            "with_the_plans_own_target": {
                f"replicas {slower:g} times as slow as planned": {
                    policy: _own(runs, trace, policy, slower) for policy in policies
                }
                for slower in dict.fromkeys(run.slower for run in runs)
            },
        }
        for trace in traces
    }


def _equal(runs: Sequence[Run], trace: str, policy: str, share: float) -> dict[str, Any]:
    each = []
    for seed in dict.fromkeys(run.seed for run in runs):
        mine = [run for run in runs if (run.trace, run.policy, run.seed, run.slower) == (trace, policy, seed, 1.0)]
        each.append(interpolate_gpu_hours(mine, share))
    reached = [hours for hours in each if hours is not None]
    return {"reached": f"{len(reached)} of {len(each)}", **_spread(reached)}


def _own(runs: Sequence[Run], trace: str, policy: str, slower: float) -> dict[str, Any]:
    mine = [run for run in runs if (run.trace, run.policy, run.factor, run.slower) == (trace, policy, 1.0, slower)]
    return {
        "in_time": _spread([run.in_time for run in mine], 3),
        "gpu_hours": _spread([run.gpu_hours for run in mine]),
        "loads": _spread([float(run.loads) for run in mine], 1),
    }


def _spread(figures: Sequence[float], digits: int = 2) -> dict[str, float]:
    if not figures:
        return {}
    return {name: round(of(figures), digits) for name, of in (("mean", fmean), ("min", min), ("max", max))}


def print_summary(found: dict[str, Any], console: Console) -> None:
    for trace, parts in found.items():
        table = Table("GPU hours", *next(iter(parts["gpu_hours_at_equal_share"].values())), title=trace)
        for share, policies in parts["gpu_hours_at_equal_share"].items():
            table.add_row(f"at {share}", *(_format(figures) for figures in policies.values()))
        for speed, policies in parts["with_the_plans_own_target"].items():
            table.add_row(
                f"plan's target, {speed}",
                *(f"{_format(one['gpu_hours'])}, in time {_format(one['in_time'])}" for one in policies.values()),
            )
        console.print(table)


def _format(figures: dict[str, Any]) -> str:
    return f"{figures['mean']:g} ({figures['min']:g}-{figures['max']:g})" if "mean" in figures else "not reached"


def list_runs(runs: Iterable[Run]) -> list[dict[str, Any]]:
    return [asdict(run) for run in runs]
