"""Values that the chart tenant accepts, and the words of some refusals."""

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
def test_good_values_are_accepted(good: Values) -> None:
    assert CHART.broken(good) == ""


@pytest.mark.parametrize("helm", HELMS)
def test_both_helms_give_the_same_message(helm: str) -> None:
    problem = CHART.refused("quota-below-plan", CHART.rules["quota-below-plan"].bad[0], helm)
    assert problem.rule == "quota-below-plan"
    assert problem.message == ("quota.gpus.nvidia.com/gpu.baseline: 1 is less than planned (2)")
    assert problem.fix == "quota: {gpus: {nvidia.com/gpu: {baseline: 2}}}   # or plan fewer GPUs"


def test_unknown_gpu_resource_is_refused_with_the_known_ones() -> None:
    problem = CHART.refused(
        "resource-unknown", {"quota": {"gpus": {"nvidia.com/gpus": {"planned": 1, "upgradeSurge": 1}}}}
    )
    assert "nvidia.com/gpu, nvidia.com/gpu.shared, amd.com/gpu" in problem.message
    assert yaml.safe_load(problem.fix)["quota"]["gpuResources"][-1] == "nvidia.com/gpus"
