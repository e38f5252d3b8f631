"""The order of keys in a fleet file changes neither the plan nor a byte of what `rayhelm render` writes."""

import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from rayhelm.deploy.render.files import build_files, render_fleet
from rayhelm.fleet.document import read_document
from shared.fleets import plan

VALUES = Path(__file__).parents[2] / "values"
FLEETS = sorted(path.parent.name for path in VALUES.glob("*/fleet.yaml"))

TIES = """
    fleet: ties
    clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}}}
    pools: {%s}
    models: {%s}
    tenants: {%s}
    """
POOLS = [
    f"{name}: {{gpu: L4-24GB, nodes: 1, gpusPerNode: 2, nodeSelector: {{example.com/pool: {name}}}}}"
    for name in ("blue", "green", "red")
]
MODELS = [f"{name}: {{source: Qwen/Qwen2.5-7B-Instruct, context: 4096}}" for name in ("a", "b", "c", "d")]
TENANTS = [f"{name}: {{models: [a, b, c, d]}}" for name in ("one", "two")]


def shuffle_keys(data: Any, seed: random.Random) -> Any:
    """Return a copy with all maps in a random order, and all lists as they are."""
    if isinstance(data, dict):
        keys = list(data)
        seed.shuffle(keys)
        return {key: shuffle_keys(data[key], seed) for key in keys}
    return [shuffle_keys(item, seed) for item in data] if isinstance(data, list) else data


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", FLEETS)
def test_render_writes_the_committed_bytes_when_keys_are_shuffled(name: str, seed: int, tmp_path: Path) -> None:
    data = read_document(VALUES / name / "fleet.yaml").data
    shuffled = shuffle_keys(data, random.Random(seed))
    assert list(shuffled) != list(data) or list(shuffled["models"]) != list(data["models"])
    file = tmp_path / name / "fleet.yaml"
    file.parent.mkdir()
    file.write_text(yaml.safe_dump(shuffled, sort_keys=False))
    rendered = render_fleet(file)
    assert rendered.plan == render_fleet(VALUES / name / "fleet.yaml").plan
    for path, text in build_files(rendered).items():
        assert text == (VALUES / name / path).read_text(), path


def test_equal_models_are_placed_on_equal_pools_by_name_in_any_order() -> None:
    placed = {"a": "blue", "b": "blue", "c": "green", "d": "green"}
    for seed in range(10):
        lists = (random.Random(seed).sample(entries, len(entries)) for entries in (POOLS, MODELS, TENANTS))
        found = plan(TIES % tuple(map(", ".join, lists)))
        assert {model: made.pool for model, made in found.models.items()} == placed
