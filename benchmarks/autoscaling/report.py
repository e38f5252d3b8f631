"""Cards and first tokens in time, and what follows from them."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = ["Run", "as_json", "at_equal_share", "summary", "tell"]


@dataclass(frozen=True)
class Run:
    """One hour with one policy."""

    trace: str
    policy: str
    factor: float
    """On the plan's target."""
    slower: float
    """Factor on all times of the plan."""
    seed: int
    card_hours: float
    in_time: float
    """Share of requests whose first token came in time."""
    loads: int
    """Replicas that were loaded after the first ones."""


def at_equal_share(curve: Iterable[Run], share: float) -> float | None:
    """Fewest card-hours with which that share of requests was in time, straight between neighbours of the sweep; None
    where no target reached it."""
    points = sorted(curve, key=lambda run: run.factor, reverse=True)
    found = [run.card_hours for run in points if run.in_time >= share]
    for less, more in pairwise(points):
        if less.in_time < share <= more.in_time:
            part = (share - less.in_time) / (more.in_time - less.in_time)
            found.append(less.card_hours + part * (more.card_hours - less.card_hours))
    return min(found, default=None)


def summary(runs: Sequence[Run], shares: Sequence[float]) -> dict[str, Any]:
    traces, policies = dict.fromkeys(run.trace for run in runs), dict.fromkeys(run.policy for run in runs)
    return {
        trace: {
            "card_hours_at_equal_share": {
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
        each.append(at_equal_share(mine, share))
    reached = [hours for hours in each if hours is not None]
    return {"reached": f"{len(reached)} of {len(each)}", **_spread(reached)}


def _own(runs: Sequence[Run], trace: str, policy: str, slower: float) -> dict[str, Any]:
    mine = [run for run in runs if (run.trace, run.policy, run.factor, run.slower) == (trace, policy, 1.0, slower)]
    return {
        "in_time": _spread([run.in_time for run in mine], 3),
        "card_hours": _spread([run.card_hours for run in mine]),
        "loads": _spread([float(run.loads) for run in mine], 1),
    }


def _spread(figures: Sequence[float], digits: int = 2) -> dict[str, float]:
    if not figures:
        return {}
    return {name: round(of(figures), digits) for name, of in (("mean", fmean), ("least", min), ("most", max))}


def tell(found: dict[str, Any], console: Console) -> None:
    for trace, parts in found.items():
        table = Table("card-hours", *next(iter(parts["card_hours_at_equal_share"].values())), title=trace)
        for share, policies in parts["card_hours_at_equal_share"].items():
            table.add_row(f"at {share}", *(_told(figures) for figures in policies.values()))
        for speed, policies in parts["with_the_plans_own_target"].items():
            table.add_row(
                f"plan's target, {speed}",
                *(f"{_told(one['card_hours'])}, in time {_told(one['in_time'])}" for one in policies.values()),
            )
        console.print(table)


def _told(figures: dict[str, Any]) -> str:
    return f"{figures['mean']:g} ({figures['least']:g}-{figures['most']:g})" if "mean" in figures else "never"


def as_json(runs: Iterable[Run]) -> list[dict[str, Any]]:
    return [asdict(run) for run in runs]
