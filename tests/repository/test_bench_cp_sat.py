"""The comparison of placements with CP-SAT: its integer programs, and its result."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULT = json.loads((ROOT / "benchmarks/planning/result.json").read_text())["cp-sat"]["result"]


@pytest.fixture(scope="module")
def cp_sat() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        from planning import cp_sat

        yield cp_sat


@pytest.fixture(scope="module")
def case(cp_sat: ModuleType) -> Any:
    return cp_sat.build_case(cp_sat.generate_cp_sat_fleet(10, 3, 1, scarce=True))


@pytest.mark.parametrize("scarce", [False, True])
@pytest.mark.parametrize(("models", "pools", "seed"), [(5, 2, 0), (10, 3, 2)])
def test_plan_is_a_solution_of_the_program_with_the_same_cost(
    cp_sat: ModuleType, models: int, pools: int, seed: int, scarce: bool
) -> None:
    case = cp_sat.build_case(cp_sat.generate_cp_sat_fleet(models, pools, seed, scarce=scarce))
    value = case.placements["found"].value
    assert all(row.holds(case.solution) for row in case.program.rows)
    assert all(0 <= case.solution[name] <= case.program.most[name] for name in case.solution)
    assert case.program.evaluate(case.solution)[:-1] == value[1:-1]
    assert case.program.evaluate(case.solution)[-1] / 1e6 == pytest.approx(value[-1])


def test_plan_that_shares_gpus_is_a_solution_of_the_program(case: Any) -> None:
    assert any(candidate.share < 1 for candidate in case.placements["found"].chosen.values())
    assert all(row.holds(case.solution) for row in case.program.rows)
    assert case.program.evaluate(case.solution)[-1] / 1e6 == pytest.approx(case.placements["found"].value[-1])


def test_program_has_no_more_hosts_than_the_pool(case: Any) -> None:
    for group in case.program.groups.values():
        patterns = [group.name_pattern(pattern) for pattern in group.patterns]
        (hosts,) = (row for row in case.program.rows if row.terms.keys() == set(patterns) and row.low is None)
        assert hosts.holds({patterns[0]: len(group.hosts)})
        assert not hosts.holds({patterns[0]: len(group.hosts) + 1})


def test_plan_is_no_solution_without_a_pattern_that_it_uses(case: Any) -> None:
    groups = case.program.groups.values()
    names = [group.name_pattern(pattern) for group in groups for pattern in group.patterns]
    used = [name for name in names if case.solution.get(name)]
    assert used
    for name in used:
        assert not all(row.holds(case.solution | {name: 0}) for row in case.program.rows)


@pytest.mark.usefixtures("cp_sat")
def test_program_has_no_solution_where_the_planner_finds_no_room() -> None:
    from planning.placements import load_fleet, resolve_fleet
    from planning.program import build_program

    model = {"source": "Qwen/Qwen3-8B", "context": 4096, "unpinnedReason": "generated"}
    data = {"fleet": "full", "pools": {"only": {"gpu": "L4-24GB", "nodes": 1}}, "models": {"a": model, "b": model}}
    fleet = resolve_fleet(load_fleet(data))
    program = build_program(fleet.inventories, fleet.list_candidates())
    assert not fleet.place()
    for values in product(*(range(most + 1) for most in program.most.values())):
        solution = dict(zip(program.most, values, strict=True))
        assert not all(row.holds(solution) for row in program.rows)


@pytest.mark.usefixtures("cp_sat")
@pytest.mark.parametrize(
    ("sizes", "room", "patterns"),
    [
        ((1, 2, 4), 4, [(4,), (2, 2), (2, 1, 1), (1, 1, 1, 1)]),
        ((8, 3), 8, [(8,), (3, 3)]),
        ((0.6, 0.35), 1.0, [(0.6, 0.35), (0.35, 0.35)]),
        ((2,), 1, []),
    ],
)
def test_patterns_are_all_that_no_further_size_fits_in(
    sizes: tuple[float, ...], room: float, patterns: list[tuple[float, ...]]
) -> None:
    from planning.program import list_patterns

    assert list_patterns(sizes, room) == patterns


def test_candidates_on_fewest_hosts_have_no_longer_pipelines_over_hosts(cp_sat: ModuleType) -> None:
    fleet = cp_sat.build_case(cp_sat.generate_cp_sat_fleet(5, 2, 1, scarce=False)).fleet
    candidates = fleet.list_candidates()["model-00004"]
    kept = cp_sat.list_on_fewest_hosts(candidates)
    assert {each.split.nodes for each in candidates if each.split.gpu.id == "L40S-48GB"} >= {1, 2, 3}
    assert {each.split.nodes for each in kept if each.split.gpu.id == "L40S-48GB" and each.split.shape.tp == 4} == {1}
    assert [each for each in candidates if each.split.nodes == 1] == [each for each in kept if each.split.nodes == 1]


def test_plans_cost_at_most_2_percent_more_than_the_optimum_on_fewest_hosts() -> None:
    for found in RESULT["all"].values():
        assert found["to_optimum_on_fewest_hosts"]["largest"] <= 1.02


def test_result_is_of_the_version_in_the_lock() -> None:
    pinned = re.search(r"^ortools==(\S+)", (ROOT / "requirements/cp-sat.txt").read_text(), re.MULTILINE)
    assert pinned
    assert pinned[1] == RESULT["ortools"]


@pytest.mark.usefixtures("cp_sat")
def test_page_has_the_table_of_the_result() -> None:
    from planning.page import PAGE, replace_table

    assert replace_table(PAGE.read_text(), RESULT) == PAGE.read_text()


def test_plans_with_scarce_gpus_cost_at_most_5_percent_more_than_the_optimum() -> None:
    found: Mapping[str, Any] = RESULT["all"]["scarce"]
    assert found["optimum_proven"] > 10
    assert found["to_optimum"]["largest"] <= 1.05


def test_no_feasible_fleet_of_the_result_is_refused_or_has_more_faults() -> None:
    for found in RESULT["all"].values():
        assert found["feasible_but_refused"] == found["more_faults_than_optimum"] == 0


def test_planner_allocates_nine_of_ten_proven_optima_for_the_same_cost() -> None:
    """The others need fractions of GPUs packed tighter than the largest first."""
    for found in RESULT["all"].values():
        assert found["optimum_allocated"] >= 0.9 * found["optimum_proven"]


def test_each_fleet_of_the_result_is_proven_or_reported() -> None:
    for found in (*RESULT["by_size"], *RESULT["all"].values()):
        assert found["infeasible"] + found["optimum_proven"] + found["not_proven"]["fleets"] == found["fleets"]
