"""The placement on small fleets with scarce GPUs, compared with the proven optimum.

The optimum is found by enumeration with a bound: every combination of candidates that the GPUs hold is either tried or
costs more than the best one.
"""

import random
from statistics import median
from typing import Any

from planning.fleets import generate_fleet
from planning.placements import load_fleet, resolve_fleet
from rayhelm.fleet.load import LoadedFleet
from rayhelm.planner.placement.assignment import Assignment, Value
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.choose import FLAGS, rank

__all__ = ["compare", "measure_gap"]

_MOST_NODES = 300_000
"""Combinations after which the optimum of a fleet counts as not proven."""


def measure_gap(count: int) -> dict[str, Any]:
    """Return the gaps over `count` fleets."""
    rows = [row for seed in range(count) if (row := compare(generate_scarce_fleet(seed)))]
    closed = [row for row in rows if row["is_proven"]]
    same = [row for row in closed if row["faults"] == row["best_faults"] and not row["unplaced"]]
    gaps = [row["cost"] / row["best_cost"] - 1 for row in same]
    greedy = [row["one_by_one_cost"] / row["best_cost"] - 1 for row in same if row["one_by_one_cost"]]
    return {
        "fleets": len(rows),
        "optimum_proven": len(closed),
        "feasible_but_refused": sum(row["unplaced"] for row in closed),
        "refused_one_by_one": sum(row["one_by_one_cost"] is None for row in closed),
        "more_faults_than_optimum": len(closed) - len(same) - sum(row["unplaced"] for row in closed),
        "gap": _summarize(gaps),
        "gap_one_by_one": _summarize(greedy),
    }


def _summarize(gaps: list[float]) -> dict[str, float]:
    return {
        "median": round(median(gaps), 4),
        "mean": round(sum(gaps) / len(gaps), 4),
        "largest": round(max(gaps), 4),
        "share_over_5_percent": round(sum(gap > 0.05 for gap in gaps) / len(gaps), 4),
        "share_optimal": round(sum(gap < 1e-6 for gap in gaps) / len(gaps), 4),
    }


def generate_scarce_fleet(seed: int) -> LoadedFleet:
    """Return a fleet of 4 to 8 models whose cheap pools are too small for all of them."""
    dice = random.Random(seed)
    models, pools = dice.randint(4, 8), dice.randint(3, 5)
    data = generate_fleet(models, pools, seed)
    for pool in data["pools"].values():
        pool["gpusPerNode"] = min(pool["gpusPerNode"], dice.choice((1, 2, 4, 8)))
        pool["nodes"] = dice.randint(1, 3)
    return load_fleet(data)


def compare(loaded: LoadedFleet) -> dict[str, Any] | None:
    """Return costs and faults of the placement and of the optimum; None if no placement exists."""
    best, is_proven = _find_optimum(loaded)
    if best is None:
        return None
    placements = resolve_fleet(loaded).place()
    found, alone = (placements[name].value if name in placements else None for name in ("found", "one_by_one"))
    return {
        "is_proven": is_proven,
        "unplaced": found is None,
        "cost": found[-1] if found else None,
        "faults": found[:-1] if found else None,
        "one_by_one_cost": alone[-1] if alone else None,
        "best_cost": best[-1],
        "best_faults": best[:-1],
    }


def _find_optimum(loaded: LoadedFleet) -> tuple[Value | None, bool]:
    """Return the best value of all combinations, and whether all were covered."""
    fleet = resolve_fleet(loaded)
    ranked: dict[str, list[tuple[tuple[float, ...], Candidate]]] = {}
    for name, candidates in fleet.list_candidates().items():
        found = [(rank(each, True)[: FLAGS + 1], each) for each in candidates]
        ranked[name] = sorted(found, key=lambda pair: pair[0])
    if not all(ranked.values()):
        return None, True
    names = sorted(ranked, key=lambda name: (len(ranked[name]), name))
    enumeration = _Enumeration(Assignment(fleet.inventories, dict.fromkeys(names), True), names, ranked)
    enumeration.run(0, (0.0,) * (FLAGS + 1))
    return enumeration.best, enumeration.nodes < _MOST_NODES


class _Enumeration:
    def __init__(
        self, state: Assignment, names: list[str], ranked: dict[str, list[tuple[tuple[float, ...], Candidate]]]
    ) -> None:
        self.best: Value | None = None
        self.nodes = 0
        self._state, self._names, self._ranked = state, names, ranked
        least: list[tuple[float, ...]] = [(0.0,) * (FLAGS + 1)]
        for name in reversed(names):
            lowest = [min(key[index] for key, _ in ranked[name]) for index in range(FLAGS + 1)]
            least.append(tuple(a + b for a, b in zip(least[-1], lowest, strict=True)))
        self._least = least[::-1]
        """By position: lower bound of the value of the models from there on."""

    def run(self, position: int, value: tuple[float, ...]) -> None:
        if position == len(self._names):
            self.best = min(self.best or (float("inf"),), (0.0, *value))
            return
        for key, candidate in self._ranked[self._names[position]]:
            after = tuple(a + b for a, b in zip(value, key, strict=True))
            bound = tuple(a + b for a, b in zip(after, self._least[position + 1], strict=True))
            if self.nodes >= _MOST_NODES or (self.best and (0.0, *bound) >= self.best):
                continue
            self.nodes += 1
            self._state.begin()
            if self._state.add(self._names[position], candidate):
                self.run(position + 1, after)
                self._state.remove([self._names[position]])
            self._state.commit()
