"""`gpuResource` of a pool: nodes that offer their GPUs, or parts of them, under another name."""

import pytest

from rayhelm.deploy.compose.worker_groups import get_gpu_resource
from rayhelm.deploy.render.files import render_plan
from rayhelm.deploy.values.platform import PlatformValues
from rayhelm.deploy.values.tenant import TenantValues
from rayhelm.errors import FleetError
from rayhelm.planner.planner import plan_fleet
from shared.apply_fix import check_fixes
from shared.fleets import load, plan
from testbed.nodes import simulated

FLEET = """\
fleet: f
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}}}
pools:
  p: {%s}
models:
  m: {source: Qwen/Qwen3-0.6B, context: 4096, unpinnedReason: a test of pools, replicas: 2, service: a}
services: {a: {tenant: t}}
tenants: {t: {models: [m]}}
"""
IMAGE = "image: {repository: registry.example/ray-xpu, tag: 2.60.0-xpu}, deviceGroups: [44]"
I915 = f"gpu: Arc-B580-12GB, nodes: 1, gpusPerNode: 2, gpuResource: gpu.intel.com/i915, {IMAGE}"
SINGLE = "gpu: H100-SXM-80GB, nodes: 1, gpusPerNode: 8, gpuResource: nvidia.com/gpu, sharing: {layout: {1g.10gb: 7}}"
SLICED = "gpu: L4-24GB, nodes: 1, gpuResource: nvidia.com/gpu, sharing: {shares: 2}"


@pytest.mark.parametrize(
    ("pool", "offered"),
    [(I915, {"gpu.intel.com/i915": 2}), (SINGLE, {"nvidia.com/gpu": 56}), (SLICED, {"nvidia.com/gpu": 2})],
    ids=["i915", "mig-single", "time-slices"],
)
def test_pods_and_quotas_have_the_resource_of_the_pool(pool: str, offered: dict[str, int]) -> None:
    rendered = render_plan(plan_fleet(load(FLEET % pool)))
    (resource,) = offered
    assert rendered.plan.pools["p"].gpu_resources == offered
    (group,) = rendered.values["a"].worker_groups.values()
    assert (get_gpu_resource(group), group.gpu.count) == (resource, 1)
    (tenant,) = [release for release in rendered.releases if release.chart == "tenant"]
    assert isinstance(tenant.values, TenantValues)
    assert set(tenant.values.quota.gpus) == {resource}


def test_parts_keep_their_memory_under_another_resource() -> None:
    assert plan(FLEET % SINGLE).models["m"].gpu == "H100-SXM-80GB/1g.10gb"


@pytest.mark.parametrize("pool", [SINGLE, SLICED])
def test_nodes_that_are_divided_already_are_not_configured(pool: str) -> None:
    (platform,) = [
        release for release in render_plan(plan_fleet(load(FLEET % pool))).releases if release.chart == "platform"
    ]
    assert isinstance(platform.values, PlatformValues)
    assert not platform.values.nvidia.enabled


def test_simulated_nodes_offer_the_resource_of_the_pool() -> None:
    (node,) = simulated(load(FLEET % I915))
    assert node["status"]["allocatable"]["gpu.intel.com/i915"] == "2"


def test_instances_of_several_profiles_under_one_resource_are_refused() -> None:
    text = FLEET % SINGLE.replace("1g.10gb: 7", "1g.10gb: 3, 3g.40gb: 1")
    with pytest.raises(FleetError) as raised:
        load(text)
    (problem,) = raised.value.problems
    assert problem.path == "pools.p.sharing.layout"
    assert "`nvidia.com/gpu` (`gpuResource`), so they have one profile" in problem.message
    check_fixes(text, [problem], lambda fixed: plan_fleet(load(fixed)))


def test_wrong_resource_of_a_gpu_gets_the_name_of_a_gpu() -> None:
    text = FLEET % "gpu: L4-24GB, nodes: 2, gpuResource: nvidia.com/gpu!!"
    with pytest.raises(FleetError) as raised:
        load(text)
    (problem,) = raised.value.problems
    assert problem.path == "pools.p.gpuResource"
    assert problem.fix
    assert problem.fix.value == "nvidia.com/gpu"
    check_fixes(text, [problem], lambda fixed: plan_fleet(load(fixed)))
