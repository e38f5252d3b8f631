"""What else is refused by the chart tenant, and what is not, beside the rows that each chart has."""

import pytest
import yaml

from charts.each_chart import Values, chart_of
from charts.kit import HELMS

CHART = chart_of("tenant")


@pytest.mark.parametrize(
    "good",
    [
        {},
        {"quota": {"gpus": {"nvidia.com/gpu": {"planned": 0, "baseline": 4, "upgradeSurge": 0}}}},
        {"quota": {"gpus": {"nvidia.com/gpu": None}}},
        {"quota": {"objects": {"persistentVolumeClaims": 0}}},
        {"limits": {"container": {"min": {"cpu": "50m", "memory": "64Mi"}, "max": {"cpu": 64, "memory": "1Ti"}}}},
        {"limits": {"container": {"min": {"cpu": 0.05}}}},
        {"namespace": {"manage": False, "name": "tenants"}},
        {"namespace": {"name": "kubeflow"}},
        {"networkPolicy": {"dns": {"peer": {"namespace": ""}, "cidrs": ["169.254.20.10/32"]}}},
        {"nameOverride": "a" * 63},
        {"access": {"viewers": {"users": ["research"], "groups": ["others"]}}},
        {"access": {"deployers": {"serviceAccounts": ["research-ci/deployer"]}}},
    ],
)
def test_what_is_good_is_not_refused(good: Values) -> None:
    assert CHART.broken(good) == ""


@pytest.mark.parametrize("helm", HELMS)
def test_both_helms_say_the_same(helm: str) -> None:
    problem = CHART.refused("quota-under-plan", CHART.rules["quota-under-plan"].bad[0], helm)
    assert problem.rule == "quota-under-plan"
    assert problem.message == (
        "quota.gpus.nvidia.com/gpu: the plan gives the tenant's services 2 cards, and baseline allows 1"
    )
    assert problem.fix == "quota: {gpus: {nvidia.com/gpu: {baseline: 2}}}   # or plan for fewer"


def test_a_typing_error_in_a_resource_is_told_from_a_card_that_is_new() -> None:
    problem = CHART.refused(
        "resource-unknown", {"quota": {"gpus": {"nvidia.com/gpus": {"planned": 1, "upgradeSurge": 1}}}}
    )
    assert "nvidia.com/gpu, nvidia.com/gpu.shared, amd.com/gpu" in problem.message
    assert yaml.safe_load(problem.fix)["quota"]["gpuResources"][-1] == "nvidia.com/gpus"
