"""Values that the chart platform accepts, and the words of some refusals."""

import pytest

from charts.each_chart import Values, chart_of
from charts.kit import HELMS

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
