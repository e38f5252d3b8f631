"""A fleet with many problems of one stage reports all of them at once, sorted by line."""

import pytest

from rayhelm.deploy.render.files import render_plan
from rayhelm.errors import FleetError
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load

COUNT = 20
SOURCE = "source: Qwen/Qwen3-0.6B, context: 4096, unpinnedReason: an example"


def build_fleet(keys: str, service: str) -> str:
    """The names of the models are in the reverse order of their lines."""
    names = [f"m{number:02}" for number in reversed(range(COUNT))]
    models = "\n".join(f"  {name}: {{{keys}}}" for name in names)
    services = "\n".join(f"  {name}: {{{service}}}" for name in names) if service else ""
    return (
        "fleet: many\nclusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}, gpuFeatureDiscovery: true}}\n"
        f"pools:\n  gpu: {{gpu: L4-24GB, nodes: 20}}\nmodels:\n{models}\n"
        + (f"services:\n{services}\n" if services else "")
    )


@pytest.mark.parametrize(
    ("keys", "service", "last"),
    [
        pytest.param(f"{SOURCE}, task: 1", "", "task", id="types"),
        pytest.param(f"{SOURCE}, pool: none", "", "pool", id="rules"),
        pytest.param("source: Qwen/unknown, context: 4096", "", "source", id="references"),
        pytest.param(f"{SOURCE}, parallelism: {{tensor: 2}}", "", "parallelism", id="placement"),
        pytest.param(SOURCE, "values: {unknown: 1}", "unknown", id="values"),
    ],
)
def test_all_problems_of_a_stage_are_reported_by_line(keys: str, service: str, last: str) -> None:
    with pytest.raises(FleetError) as error:
        render_plan(plan_fleet(load(build_fleet(keys, service))))
    problems = error.value.problems
    assert len(problems) == COUNT
    lines = [problem.line or 0 for problem in problems]
    assert lines == list(range(lines[0], lines[0] + COUNT))
    assert {problem.path.split(".")[-1] for problem in problems} == {last}
