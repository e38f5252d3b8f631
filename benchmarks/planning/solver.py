"""Solve the integer programs of a file with CP-SAT, in its own environment: python solver.py PROGRAMS ANSWERS

Both files hold one JSON object a line. A program has `most` (largest value of each variable), `rows`, `objectives`, a
`hint` (a solution, or nothing), and the `limit` of CP-SAT's deterministic time for each objective. An answer has the
`status`, `value` and `bound` of each objective up to the first one that is not proven, the deterministic `time`, and
the `values` of the variables. This file imports nothing of rayhelm.
"""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def main(programs: Path, answers: Path) -> None:
    lines = programs.read_text().splitlines()
    with answers.open("w") as out:
        for number, line in enumerate(lines, 1):
            out.write(json.dumps(solve(json.loads(line))) + "\n")
            out.flush()
            print(f"\r{number} of {len(lines)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def solve(program: dict[str, Any]) -> dict[str, Any]:
    """Minimize the objectives one after the other; each keeps the value that was proven for those before it."""
    cp_model = import_module("ortools.sat.python.cp_model")
    model = cp_model.CpModel()
    variables = {name: model.new_int_var(0, most, name) for name, most in program["most"].items()}

    def add_up(terms: dict[str, int]) -> Any:
        return cp_model.LinearExpr.weighted_sum([variables[name] for name in terms], list(terms.values()))

    for row in program["rows"]:
        low = cp_model.INT32_MIN if row["low"] is None else row["low"]
        high = cp_model.INT32_MAX if row["high"] is None else row["high"]
        model.add_linear_constraint(add_up(row["terms"]), low, high)
    values, spent = program["hint"], 0.0
    objectives: list[dict[str, Any]] = []
    for terms in program["objectives"]:
        solver = cp_model.CpSolver()
        # One worker and no limit by the clock: the same answer on each run.
        solver.parameters.num_workers = 1
        # All rows are in the linear relaxation: without them it does not close fleets of 40 models.
        solver.parameters.linearization_level = 2
        solver.parameters.random_seed = 0
        solver.parameters.max_deterministic_time = program["limit"]
        model.clear_hints()
        for name, value in (values or {}).items():
            model.add_hint(variables[name], value)
        model.minimize(add_up(terms))
        status = solver.solve(model)
        spent += solver.response_proto.deterministic_time
        is_found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        found = {"status": solver.status_name(status), "value": None, "bound": None}
        if is_found:
            values = {name: value for name, variable in variables.items() if (value := solver.value(variable))}
            found |= {"value": round(solver.objective_value), "bound": round(solver.best_objective_bound)}
        objectives.append(found)
        if status != cp_model.OPTIMAL:
            break
        model.add(add_up(terms) <= found["value"])
    return {"objectives": objectives, "time": spent, "values": values}


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
