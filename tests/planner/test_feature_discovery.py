"""`gpuFeatureDiscovery` of a cluster: whether nodes have the label `nvidia.com/gpu.product`, which pods select."""

import pytest

from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.errors import FleetError, Problem
from rayhelm.planner.planner import plan_fleet
from shared.apply_fix import check_fixes
from shared.fleets import load

FLEET = """\
fleet: f
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}%s}}
pools:
  l4: {gpu: L4-24GB, nodes: 2%s}
  l40s: {gpu: L40S-48GB, nodes: 1%s}
models:
  a: {source: Qwen/Qwen3-0.6B, context: 4096, unpinnedReason: a test of pools, pool: l4}
  b: {source: Qwen/Qwen3-4B, context: 4096, unpinnedReason: a test of pools, pool: l40s}
"""
WITH, WITHOUT = ", gpuFeatureDiscovery: true", ", gpuFeatureDiscovery: false"
OPERATOR = ", gpuOperator: {}"
LABELS = (", nodeSelector: {gpu: l4}", ", nodeSelector: {gpu: l40s}")


def list_products(text: str) -> set[str]:
    """Return the products that the pods of all services select."""
    loaded = load(text)
    services = build_ray_service_values(plan_fleet(loaded)).values()
    return {group.gpu.product for service in services for group in service.worker_groups.values()}


@pytest.mark.parametrize("setting", [WITH, OPERATOR])
def test_pods_select_the_product_with_feature_discovery(setting: str) -> None:
    assert list_products(FLEET % (setting, *LABELS)) == {"NVIDIA-L4", "NVIDIA-L40S"}


@pytest.mark.parametrize("setting", ["", WITHOUT, OPERATOR + WITHOUT])
def test_pods_select_no_product_when_feature_discovery_is_not_known_to_run(setting: str) -> None:
    assert list_products(FLEET % (setting, *LABELS)) == {""}


def test_pods_select_the_product_when_argo_cd_installs_the_gpu_operator() -> None:
    delivery = "gitops: {repository: {url: https://git.example.com/f.git}, operators: [gpu-operator]}\n"
    assert list_products(FLEET % ("", *LABELS) + delivery) == {"NVIDIA-L4", "NVIDIA-L40S"}


def test_pods_of_other_pools_select_the_product_when_the_operator_divides_gpus() -> None:
    shared = ", nodeSelector: {gpu: l4}, sharing: {shares: 2}"
    assert "NVIDIA-L40S" in list_products(FLEET % ("", shared, LABELS[1]))


@pytest.mark.parametrize("on_demand", [", nodeStart: 4m", ", spot: karpenter"])
def test_pods_of_nodes_that_start_on_demand_select_no_product(on_demand: str) -> None:
    assert list_products(FLEET % (WITH, LABELS[0] + on_demand, LABELS[1])) == {"", "NVIDIA-L40S"}


def test_pool_of_nodes_that_start_on_demand_is_refused_without_labels() -> None:
    (problem,) = refuse(FLEET % (WITH, ", nodeStart: 4m", ""))
    assert problem.path == "pools.l4"
    assert "Nodes that start on demand do not have `nvidia.com/gpu.product` before" in problem.message
    assert "template" in problem.fix_text


@pytest.mark.parametrize("setting", ["", WITHOUT])
def test_pools_without_labels_and_feature_discovery_are_refused(setting: str) -> None:
    problems = refuse(FLEET % (setting, "", ""))
    assert [problem.path for problem in problems] == ["pools.l4", "pools.l40s"]
    assert "`gpuFeatureDiscovery: true` of cluster `main` is enough" in problems[0].message


def refuse(text: str) -> tuple[Problem, ...]:
    with pytest.raises(FleetError) as raised:
        plan_fleet(load(text))
    check_fixes(text, raised.value.problems, lambda fixed: plan_fleet(load(fixed)))
    return raised.value.problems


def test_one_pool_needs_no_labels() -> None:
    text = FLEET.replace("  l40s: {gpu: L40S-48GB, nodes: 1%s}\n", "").replace("pool: l40s", "pool: l4")
    assert list_products(text % ("", "")) == {""}


def test_pools_of_different_products_need_no_labels_with_feature_discovery() -> None:
    assert plan_fleet(load(FLEET % (WITH, "", ""))).models
