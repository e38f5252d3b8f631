"""Random edits of the reference fleets: each one is planned, or refused with its problems; none ends in a traceback."""

import copy
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from rayhelm.check.lint.preview import preview_problems
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.deploy.render.warnings import find_open_gateways, find_open_images, list_warnings
from rayhelm.errors import FleetError, Problem
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import parse_fleet
from rayhelm.planner.planner import plan_fleet

FLEETS = sorted((charts_dir().parent / "values").glob("*/fleet.yaml"))
SEEDS = range(8)
EDITS = 20
"""Edited fleets for each seed."""
VALUES: list[Any] = [
    *[None, 0, -1, 1, 3, 0.5, 1e9, 10**30, True, False, float("inf"), float("nan")],
    *["", "x", "a" * 300, "Ä ü", "a/b", "../x", "true", "1GiB", "10Gbit/s", "1s", "-1s", "100%", "{{ x }}", "$(X)"],
    *["\n", "L4-24GB", "ethernet-1g", "main", "2026-01-01", [], {}, [1], ["x"], {"x": 1}, {"x": {}}],
]
KEYS = ["x", "X Y", "a.b", "", 1, None, "main", "a" * 80]

Keys = tuple[Any, ...]


def list_paths(value: object, path: Keys = ()) -> Iterator[Keys]:
    """Yield the path of every value below `value`."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield (*path, key)
        yield from list_paths(child, (*path, key))


def get(value: Any, path: Keys) -> Any:
    for key in path:
        value = value[key]
    return value


def edit(fleet: dict[str, Any], others: list[dict[str, Any]], chance: random.Random) -> None:
    """Replace, remove or rename one value, or take one from another fleet."""
    *above, key = chance.choice(list(list_paths(fleet)))
    parent = get(fleet, tuple(above))
    match chance.choice(("replace", "remove", "rename", "take")):
        case "replace":
            parent[key] = chance.choice(VALUES)
        case "remove":
            del parent[key]
        case "rename" if isinstance(parent, dict):
            parent[chance.choice(KEYS)] = parent.pop(key)
        case _:
            other = chance.choice(others)
            path = chance.choice(list(list_paths(other)))
            parent[path[-1] if isinstance(parent, dict) else key] = copy.deepcopy(get(other, path))


def find_problems(text: str) -> Sequence[Problem]:
    """Do what `rayhelm plan` does, and return why the fleet is refused."""
    try:
        loaded = parse_fleet(parse_document(text, "fleet.yaml"))
        plan = plan_fleet(loaded)
        preview_problems(plan)
        list_warnings(plan)
        find_open_images(plan)
        find_open_gateways(plan)
    except FleetError as error:
        return error.problems
    return ()


@pytest.mark.parametrize("seed", SEEDS)
def test_random_edit_of_a_fleet_is_planned_or_refused_with_problems(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    fleets = [yaml.safe_load(file.read_text()) for file in FLEETS]
    for _ in range(EDITS):
        fleet = copy.deepcopy(chance.choice(fleets))
        for _ in range(chance.choice((1, 1, 2, 3))):
            edit(fleet, fleets, chance)
        text = yaml.safe_dump(fleet, sort_keys=False, allow_unicode=True)
        (tmp_path / "fleet.yaml").write_text(text)  # what a failure leaves behind
        assert all(str(problem) and problem.message for problem in find_problems(text))
