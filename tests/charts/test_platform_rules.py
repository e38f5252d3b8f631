"""Values that the chart platform accepts, and the words of some refusals."""

import pytest
import yaml

from charts.each_chart import Values, chart_of, replaced
from charts.kit import HELMS, over

CHART = chart_of("platform")


@pytest.mark.parametrize(
    "good",
    [
        {},
        {"priorityClasses": {"gateway": {"value": 1_000_000_000}}},
        {"priorityClasses": {"batch": {"value": -1, "preempts": True}}},
        {"runtimeClasses": {"nvidia": {"handler": "nvidia"}, "kata": {"handler": "kata-qemu"}}},
    ],
)
def test_good_values_are_accepted(good: Values) -> None:
    assert CHART.broken(good) == ""


@pytest.mark.parametrize("helm", HELMS)
def test_both_helms_give_the_same_message(helm: str) -> None:
    problem = CHART.refused("duplicate", CHART.rules["duplicate"].bad[0], helm)
    assert problem.rule == "duplicate"
    assert problem.message == "priorityClasses.workers.name: rayhelm-head is already the name of priorityClasses.head"
    assert problem.fix == "priorityClasses: {workers: {name: rayhelm-workers}}"


ROWS = [
    pytest.param(name, bad, id=f"{name}-{number}")
    for name, rule in CHART.rules.items()
    if "chart" in rule.layers
    for number, bad in enumerate(rule.bad)
]


@pytest.mark.parametrize(("name", "bad"), ROWS)
def test_fix_is_accepted(name: str, bad: Values) -> None:
    """A fix that is not YAML says which key to remove or change, or is a command."""
    fix = CHART.refused(name, bad).fix
    if fix.startswith(("# ", "helm ")):
        return
    fixed = replaced(bad, yaml.safe_load(fix)) if name in CHART.needs_a_choice else over(bad, yaml.safe_load(fix))
    assert CHART.broken(fixed) not in (name, "schema")
