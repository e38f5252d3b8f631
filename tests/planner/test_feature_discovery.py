"""`gpuFeatureDiscovery` of a cluster: whether nodes have the label `nvidia.com/gpu.product`, which pods select."""

import pytest

from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.errors import FleetError
from rayhelm.planner.planner import plan_fleet
from shared.apply_fix import check_fixes
from shared.fleets import load

FLEET = """\
fleet: f
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}%s}}
pools:
  l4: {gpu: L4-24GB, nodes: 1%s}
  l40s: {gpu: L40S-48GB, nodes: 1%s}
models:
  a: {source: Qwen/Qwen3-0.6B, context: 4096, unpinnedReason: a test of pools, pool: l4}
  b: {source: Qwen/Qwen3-4B, context: 4096, unpinnedReason: a test of pools, pool: l40s}
"""
WITHOUT = ", gpuFeatureDiscovery: false"
LABELS = (", nodeSelector: {gpu: l4}", ", nodeSelector: {gpu: l40s}")


@pytest.mark.parametrize(("setting", "products"), [("", {"NVIDIA-L4", "NVIDIA-L40S"}), (WITHOUT, {""})])
def test_pods_select_the_product_only_with_feature_discovery(setting: str, products: set[str]) -> None:
    loaded = load(FLEET % (setting, *LABELS))
    services = build_ray_service_values(plan_fleet(loaded), loaded).values()
    assert {group.gpu.product for service in services for group in service.worker_groups.values()} == products


def test_pools_without_labels_and_feature_discovery_are_refused() -> None:
    text = FLEET % (WITHOUT, "", "")
    with pytest.raises(FleetError) as raised:
        plan_fleet(load(text))
    assert [problem.path for problem in raised.value.problems] == ["pools.l4", "pools.l40s"]
    check_fixes(text, raised.value.problems, lambda fixed: plan_fleet(load(fixed)))


def test_pools_of_different_products_need_no_labels_with_feature_discovery() -> None:
    assert plan_fleet(load(FLEET % ("", "", ""))).models
