"""The placement on fleets of 5 to 40 models, compared with the optimum that CP-SAT of OR-Tools proves."""

import json
import random
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from planning.fleets import generate_fleet, is_small
from planning.placements import FoundPlacement, ResolvedFleet, load_fleet, resolve_fleet
from planning.program import USD, Program, build_program, find_group
from planning.solution import express
from rayhelm.fleet.load import LoadedFleet
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.choose import FLAGS

__all__ = ["Case", "build_case", "compare_fleets", "generate_cp_sat_fleet", "list_on_fewest_hosts", "measure_cp_sat"]

_SIZES = (
    ("ample", 5, 2, 4),
    ("ample", 10, 3, 4),
    ("ample", 20, 4, 4),
    ("scarce", 5, 2, 4),
    ("scarce", 10, 3, 4),
    ("scarce", 20, 4, 4),
    ("scarce", 40, 6, 2),
)
"""GPUs, models, pools, and number of fleets."""
_PYTHON = Path(__file__).parents[2] / ".cache/cp-sat/bin/python"
"""Python with OR-Tools, installed by benchmarks/planning/peers."""
_LIMIT = 30.0
"""Deterministic time of CP-SAT for each objective of a fleet: it counts work, so it is the same on each computer."""
_GPUS_PER_MODEL = 1.25
"""Of all pools together, where GPUs are scarce."""
_CLOSE = 1.05


@dataclass(frozen=True)
class Case:
    """A fleet with its integer program, and the planner's placements as solutions of it."""

    fleet: ResolvedFleet
    program: Program
    placements: dict[str, FoundPlacement]
    solution: dict[str, int] | None
    """The placement that the planner prefers; None if it found none."""

    def on_fewest_hosts(self) -> "Case":
        """Return the case without pipelines over more hosts than the model needs. The planner's placement may be no
        solution of its program: it has such pipelines where others leave no room."""
        candidates = {name: list_on_fewest_hosts(each) for name, each in self.fleet.list_candidates().items()}
        return replace(self, program=build_program(self.fleet.inventories, candidates), solution=None)

    def write(self) -> str:
        program = self.program
        rows = [{"terms": row.terms, "low": row.low, "high": row.high} for row in program.rows]
        objectives = {"objectives": program.objectives, "hint": self.solution, "limit": _LIMIT}
        return json.dumps({"most": program.most, "rows": rows} | objectives)


def measure_cp_sat() -> dict[str, Any]:
    """Return the comparison over fleets of each size, with many GPUs and with few."""
    keys = [
        {"models": models, "pools": pools, "gpus": gpus, "seed": seed}
        for gpus, models, pools, count in _SIZES
        for seed in range(count)
    ]
    return _summarize_all(compare_fleets(keys))


def compare_fleets(keys: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Plan the generated fleets, solve their programs, and return one row for each."""
    cases = []
    for key in keys:
        print("planning", key, flush=True)
        loaded = generate_cp_sat_fleet(key["models"], key["pools"], key["seed"], scarce=key["gpus"] == "scarce")
        cases.append(build_case(loaded))
    answers = _solve([*cases, *(case.on_fewest_hosts() for case in cases)])
    compared = zip(keys, cases, answers[: len(cases)], answers[len(cases) :], strict=True)
    return [
        {**key, **_compare(case, answer), "best_on_fewest_hosts": _find_proven(other)}
        for key, case, answer, other in compared
    ]


def list_on_fewest_hosts(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates without pipelines over more hosts than the shortest one of the same pool, GPU and tensor
    parallel size that starts with certainty."""
    found = list(candidates)
    fewest: dict[tuple[str, str, int], int] = {}
    keys = [(*find_group(each), each.split.shape.tp) for each in found]
    for each, key in zip(found, keys, strict=True):
        _, is_tight, has_shorter_context, _, is_eager = each.faults
        if not (is_tight or has_shorter_context or is_eager):
            fewest[key] = min(fewest.get(key, each.split.nodes), each.split.nodes)
    return [
        each for each, key in zip(found, keys, strict=True) if each.split.nodes <= fewest.get(key, each.split.nodes)
    ]


def _summarize_all(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    kinds = dict.fromkeys((row["models"], row["pools"], row["gpus"]) for row in rows)
    return {
        "ortools": _find_version(),
        "deterministic_time_limit": _LIMIT,
        "by_size": [
            {"models": models, "pools": pools, "gpus": gpus}
            | _summarize([row for row in rows if (row["models"], row["pools"], row["gpus"]) == (models, pools, gpus)])
            for models, pools, gpus in kinds
        ],
        "all": {
            gpus: _summarize([row for row in rows if row["gpus"] == gpus])
            for gpus in dict.fromkeys(row["gpus"] for row in rows)
        },
        "fleets": rows,
    }


def generate_cp_sat_fleet(models: int, pools: int, seed: int, *, scarce: bool) -> LoadedFleet:
    """Return a fleet in which half of the small models are of one service, so that they may share GPUs."""
    dice = random.Random(f"{models} {pools} {seed}")
    data = generate_fleet(models, pools, seed)
    small = [model for model in data["models"].values() if is_small(model)]
    for model in small[: len(small) // 2]:
        model["service"] = "shared"
    if scarce:
        for pool in data["pools"].values():
            each = pool["gpusPerNode"] = min(pool["gpusPerNode"], dice.choice((1, 2, 4, 8)))
            pool["nodes"] = max(1, round(models / pools * _GPUS_PER_MODEL * dice.uniform(0.5, 1.5) / each))
    return load_fleet(data)


def build_case(loaded: LoadedFleet) -> Case:
    """Plan a fleet and build its program. Raises ValueError if the placement is no solution of it with the same cost
    and faults."""
    fleet = resolve_fleet(loaded)
    program = build_program(fleet.inventories, fleet.list_candidates())
    placements = fleet.place()
    if "found" not in placements:
        return Case(fleet, program, placements, None)
    found = placements["found"]
    solution = express(program, found.chosen)
    if solution is None or not all(row.holds(solution) for row in program.rows):
        raise ValueError("the placement is no solution of the program")
    *faults, cost = program.evaluate(solution)
    if (0, *faults, cost) != (*found.value[:-1], round(found.value[-1] * USD)):
        raise ValueError(f"the program has {faults} faults and cost {cost}, the plan {found.value}")
    return Case(fleet, program, placements, solution)


def _solve(cases: Sequence[Case]) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        programs, answers = Path(folder, "programs.jsonl"), Path(folder, "answers.jsonl")
        programs.write_text("".join(f"{case.write()}\n" for case in cases))
        subprocess.run([_PYTHON, Path(__file__).with_name("solver.py"), programs, answers], check=True)
        return [json.loads(line) for line in answers.read_text().splitlines()]


def _find_version() -> str:
    program = "import importlib.metadata as m; print(m.version('ortools'))"
    return subprocess.check_output([_PYTHON, "-c", program], text=True).strip()


def _compare(case: Case, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cost of the placement beside what CP-SAT found and proved, USD per hour."""
    objectives = answer["objectives"]
    *faults, last = objectives
    costs = {name: round(placement.value[-1], 6) for name, placement in case.placements.items()}
    row: dict[str, Any] = {
        "status": last["status"],
        "planner": costs.get("found"),
        "one_by_one": costs.get("one_by_one"),
    }
    if last["value"] is None:
        return row
    if len(objectives) < len(case.program.objectives):
        return row | {"status": f"fault {len(objectives)}: {last['status']}"}
    least = [each["value"] for each in faults]
    has_more = case.solution is not None and list(case.program.evaluate(case.solution)[:-1]) != least
    return row | {
        "best": last["value"] / USD,
        "bound": last["bound"] / USD,
        "has_more_faults": has_more,
        "is_allocated": _can_allocate(case, answer["values"]),
    }


def _find_proven(answer: Mapping[str, Any]) -> float | None:
    """Return the cost of the optimum, USD per hour; None if it is not proven."""
    last = answer["objectives"][-1]
    is_proven = len(answer["objectives"]) == FLAGS + 1 and last["status"] == "OPTIMAL"
    return last["value"] / USD if is_proven else None


def _can_allocate(case: Case, values: Mapping[str, int]) -> bool:
    """Return whether the planner's code allocates the GPUs of CP-SAT's solution, for the same cost."""
    chosen = {
        model: next(candidate for name, candidate in columns.items() if values.get(name))
        for model, columns in case.program.columns.items()
    }
    solution = express(case.program, chosen)
    return solution is not None and case.program.evaluate(solution) == case.program.evaluate(values)


def _summarize(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    feasible = [row for row in rows if row.get("best")]
    closed = [row for row in feasible if row["status"] == "OPTIMAL"]
    others = [row for row in feasible if row["status"] != "OPTIMAL"]
    return {
        "fleets": len(rows),
        "infeasible": sum(row["status"] == "INFEASIBLE" for row in rows),
        "optimum_proven": len(closed),
        "feasible_but_refused": sum(row["planner"] is None for row in feasible),
        "refused_one_by_one": sum(row["one_by_one"] is None for row in feasible),
        "more_faults_than_optimum": sum(row["has_more_faults"] for row in feasible),
        "optimum_allocated": sum(row["is_allocated"] for row in closed),
        "to_optimum": _divide(closed, "planner", "best"),
        "to_optimum_on_fewest_hosts": _divide(
            [row for row in feasible if row["best_on_fewest_hosts"]], "planner", "best_on_fewest_hosts"
        ),
        "one_by_one_to_optimum": _divide(closed, "one_by_one", "best"),
        "not_proven": {
            "fleets": len(others),
            "to_best": _divide(others, "planner", "best"),
            "to_bound": _divide(others, "planner", "bound"),
        },
    }


def _divide(rows: Sequence[Mapping[str, Any]], cost: str, least: str) -> dict[str, Any] | None:
    """Return the ratios of two costs; None without any. Placements with more faults are not compared."""
    ratios = [row[cost] / row[least] for row in rows if row[cost] is not None and not row["has_more_faults"]]
    if not ratios:
        return None
    return {
        "median": round(median(ratios), 4),
        "largest": round(max(ratios), 4),
        "share_up_to_1.05": round(sum(ratio <= _CLOSE for ratio in ratios) / len(ratios), 4),
        "share_optimal": round(sum(ratio < 1 + 1e-6 for ratio in ratios) / len(ratios), 4),
    }
