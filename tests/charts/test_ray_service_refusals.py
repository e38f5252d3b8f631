"""The table of rules that tests/cluster/test_refused.py runs in a cluster."""

import pytest

from charts.kit import example, only, over, parsed, rendered
from charts.unguarded import unguarded_chart
from cluster.kit.refused import CHART, cases, table
from rayhelm.check.lint.serve_config import check_serve_config
from rayhelm.deploy.charts.helm import render
from rayhelm.deploy.charts.rules import rules
from rayhelm.errors import FleetError

RULES = rules(CHART)
CASES = [pytest.param(rule, case, id=f"{rule}-{name.replace(' ', '-')}") for rule, name, case in cases()]
ASKED = [
    pytest.param(asked, id=f"{rule}-{name.replace(' ', '-')}")
    for rule, entry in table().items()
    for name, asked in entry.asked.items()
]


@pytest.fixture(scope="module")
def unguarded(tmp_path_factory):
    return unguarded_chart(tmp_path_factory.mktemp("unguarded"))


def test_every_rule_has_a_row_in_the_cluster_table():
    assert list(table()) == list(RULES)


@pytest.mark.parametrize(("rule", "case"), CASES)
def test_chart_refuses_the_cases_of_the_cluster_table(rule, case):
    version = case.until or RULES[rule].until or case.since or RULES[rule].since or "1.7.0"
    values = over(over(example("stand-in"), {"kuberay": {"version": version}}), case.values)
    with pytest.raises(FleetError) as caught:
        render(CHART, case.release or "chat", "models", values)
    if "chart" in RULES[rule].layers:
        assert caught.value.problems[0].rule == rule
    else:
        assert "don't meet the specifications of the schema" in str(caught.value)


def test_chart_without_validation_renders_the_same(unguarded):
    assert parsed(render(unguarded, "chat", "models", example("stand-in"))) == rendered(base="stand-in")


@pytest.mark.serve
@pytest.mark.parametrize("asked", ASKED)
def test_ray_and_vllm_refuse_the_same_values(unguarded, asked):
    objects = parsed(render(unguarded, "chat", "models", over(example("minimal"), asked.values)))
    problems = check_serve_config(only(objects, "RayService")["spec"]["serveConfigV2"])
    assert any(asked.says in problem.message for problem in problems), problems
