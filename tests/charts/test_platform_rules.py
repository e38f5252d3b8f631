"""What else is refused by the chart platform, and what is not, beside the rows that each chart has."""

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
def test_what_is_good_is_not_refused(good: Values) -> None:
    assert CHART.broken(good) == ""


@pytest.mark.parametrize("helm", HELMS)
def test_both_helms_say_the_same(helm: str) -> None:
    problem = CHART.refused("duplicate", CHART.rules["duplicate"].bad[0], helm)
    assert problem.rule == "duplicate"
    assert problem.message == "priorityClasses.workers.name: rayhelm-head is already the name of priorityClasses.head"
    assert problem.fix == "priorityClasses: {workers: {name: rayhelm-workers}}"
