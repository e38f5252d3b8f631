"""The benchmark of the planner: its generated fleets, and a small part of its comparison with the optimum."""

from pathlib import Path
from random import Random
from types import ModuleType

import pytest

from rayhelm.planner.planner import plan_fleet
from shared.fleets import load

ROOT = Path(__file__).resolve().parent.parent.parent
SEEDS = range(6)


@pytest.fixture
def gap(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from planning import gap

    return gap


@pytest.mark.parametrize("seed", SEEDS)
def test_placement_is_between_the_optimum_and_one_by_one(gap: ModuleType, seed: int) -> None:
    found = gap.compare(gap.generate_scarce_fleet(seed))
    assert found["is_proven"]
    assert not found["unplaced"]
    assert found["best_cost"] <= found["cost"] + 1e-6
    assert found["one_by_one_cost"] is None or found["cost"] <= found["one_by_one_cost"] + 1e-6


@pytest.mark.parametrize("seed", [9, 47])
def test_placement_is_the_optimum_where_single_moves_do_not_find_it(gap: ModuleType, seed: int) -> None:
    """9: several models have to move at once. 47: a longer pipeline with one replica is cheaper than two short ones."""
    found = gap.compare(gap.generate_scarce_fleet(seed))
    assert found["is_proven"]
    assert found["cost"] == pytest.approx(found["best_cost"])


@pytest.mark.usefixtures("gap")
def test_placement_of_20_models_is_the_optimum_that_cp_sat_proved() -> None:
    """Models that are not the cheapest ones of their pools have to move together."""
    from planning.fleets import generate_fleet, is_small
    from planning.placements import load_fleet, resolve_fleet

    dice, data = Random("20 4 4 1.5"), generate_fleet(20, 4, 4)
    small = [model for model in data["models"].values() if is_small(model)]
    for model in small[: len(small) // 2]:
        model["service"] = "shared"
    for pool in data["pools"].values():
        each = pool["gpusPerNode"] = min(pool["gpusPerNode"], dice.choice((1, 2, 4, 8)))
        pool["nodes"] = max(1, round(5 * 1.5 * dice.uniform(0.5, 1.5) / each))
    assert resolve_fleet(load_fleet(data)).place()["found"].value[-1] == pytest.approx(42.412)


@pytest.mark.parametrize("seed", SEEDS)
def test_plan_of_a_scarce_fleet_is_the_same_each_time(gap: ModuleType, seed: int) -> None:
    fleet = gap.generate_scarce_fleet(seed)
    assert plan_fleet(fleet) == plan_fleet(fleet)


def test_models_that_leave_no_room_for_another_one_are_not_dropped() -> None:
    text = """
        fleet: full
        pools: {only: {gpu: L4-24GB, nodes: 2}}
        models:
          a: {source: Qwen/Qwen3-8B, context: 4096}
          b: {source: Qwen/Qwen3-4B, context: 4096}
    """
    found = plan_fleet(load(text))
    assert set(found.models) == {"a", "b"}
    assert found.pools["only"].used == 2
