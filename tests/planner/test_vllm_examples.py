"""The examples of docs/tasks/use-vllm-features.md are fleets that plan."""

from pathlib import Path

import pytest
import yaml

from rayhelm.fleet.load import load_fleet
from rayhelm.planner.planner import plan_fleet
from shared.vllm_examples import EXAMPLES


def test_page_has_the_examples() -> None:
    assert {"agent", "thinker", "extract", "see"} <= {*EXAMPLES}


@pytest.mark.parametrize("name", EXAMPLES)
def test_engine_arguments_of_an_example_reach_the_plan(name: str, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(EXAMPLES[name])
    written = yaml.safe_load(EXAMPLES[name])["models"][name]["engine"]
    planned = plan_fleet(load_fleet(fleet)).models[name].engine
    assert {key: planned[key] for key in written} == written
