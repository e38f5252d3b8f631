"""GPUs that several services share: the plan for `sharing`, and what is refused."""

import pytest

from rayhelm.deploy.render.files import Rendered, render_plan
from rayhelm.deploy.values.platform import PlatformValues
from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.planner.plan import ModelPlan
from rayhelm.planner.planner import plan_fleet
from shared.apply_fix import check_fixes
from shared.fleets import load, plan

FLEET = """\
fleet: shared
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}}}
pools:
  pool: {gpu: %s, nodes: %d, gpusPerNode: %d, sharing: %s, nodeSelector: {pool: shared}}
models:
  chat: {%s}
  small: {%s}
services: {chat: {tenant: one}, small: {tenant: two}}
tenants: {one: {models: [chat]}, two: {models: [small]}}
"""


def of(
    sharing: str,
    gpu: str = "H100-SXM-80GB",
    nodes: int = 1,
    per_node: int = 1,
    chat: str = "",
    small: str = "",
) -> Rendered:
    usual = {"source: Qwen/Qwen2.5-7B-Instruct, context: 8192": chat, "source: Qwen/Qwen3-0.6B, context: 4096": small}
    both = [said if "source" in said else f"{model}, {said}".removesuffix(", ") for model, said in usual.items()]
    return render_plan(plan_fleet(load(FLEET % (gpu, nodes, per_node, sharing, *both))))


def models(rendered: Rendered) -> tuple[ModelPlan, ModelPlan]:
    return rendered.plan.models["chat"], rendered.plan.models["small"]


def refused(sharing: str, **rest: object) -> Problem:
    with pytest.raises(FleetError) as caught:
        of(sharing, **rest)  # type: ignore[arg-type]
    return caught.value.problems[0]


def because(model: ModelPlan, decision: str = "sharing") -> str:
    return next(reason.because for reason in model.reasons if reason.decision == decision)


# -- MIG -----------------------------------------------------------------------------------------------------------


def test_two_tenants_share_a_gpu_with_mig_when_isolation_is_hardware() -> None:
    rendered = of("{shares: 2, isolation: hardware}")
    for model in models(rendered):
        assert (model.gpu, model.gpus, model.gpu_fraction) == ("H100-SXM-80GB/3g.40gb", 0.5, 1.0)
        assert "`isolation: hardware` is set" in because(model)
    assert rendered.plan.pools["pool"].gpu_resources == {"nvidia.com/mig-3g.40gb": 2}
    assert (rendered.plan.pools["pool"].gpus, rendered.plan.pools["pool"].used) == (1, 1.0)


def test_memory_of_a_mig_instance_is_that_of_its_profile() -> None:
    chat, _ = models(of("{shares: 2, isolation: hardware}"))
    assert "(92% of 39.5 GiB)" in because(chat, "memory")
    assert chat.gpu_memory_utilization == 0.92


def test_layout_gives_each_model_the_cheapest_instance_that_fits() -> None:
    chat, small = models(of("{layout: {3g.40gb: 1, 1g.10gb: 3}}"))
    assert (chat.gpu, small.gpu) == ("H100-SXM-80GB/3g.40gb", "H100-SXM-80GB/1g.10gb")


def test_prices_of_mig_instances_add_up_to_the_gpu() -> None:
    chat, small = models(of("{layout: {3g.40gb: 1, 1g.10gb: 1}}"))
    assert chat.price_per_hour
    assert small.price_per_hour
    assert chat.price_per_hour + small.price_per_hour == pytest.approx(6.88, abs=1e-3)


def test_pods_and_quotas_use_the_resource_of_the_instance() -> None:
    rendered = of("{layout: {3g.40gb: 1, 1g.10gb: 3}}")
    assert {name: group.gpu.resource for name, group in rendered.values["chat"].worker_groups.items()} == {
        "pool-3g-40gb": "nvidia.com/mig-3g.40gb"
    }
    quota = rendered.tenants["main", "one"].quota
    assert quota.gpus["nvidia.com/mig-3g.40gb"].planned == 1
    assert {"nvidia.com/mig-3g.40gb", "nvidia.com/mig-1g.10gb"} <= set(quota.gpu_resources)
    assert "nvidia.com/mig-1g.10gb" not in quota.gpus


def test_upgrade_needs_a_second_instance_of_the_same_kind() -> None:
    services = of("{layout: {3g.40gb: 1, 1g.10gb: 3}}").plan.services
    assert (services["chat"].upgrade, services["small"].upgrade) == ("None", "NewCluster")
    assert "needs 1 H100-SXM-80GB/3g.40gb, and pool `pool` has 0 free" in services["chat"].upgrade_reason


def test_replicas_are_limited_by_the_mig_instances() -> None:
    problem = refused("{shares: 2, isolation: hardware}", small="replicas: 2")
    assert "needs 2 replicas with 1 H100-SXM-80GB/3g.40gb each. Pool `pool` has room for 1" in problem.message


def test_max_replicas_without_free_parts_are_refused() -> None:
    problem = refused("{shares: 2, isolation: hardware}", nodes=2, small="replicas: {min: 1, max: 9}")
    assert "up to 9 replicas of 0.5 GPU each, and pool `pool` has 2 GPUs, of which other models always use 0.5" in str(
        problem
    )
    assert str(problem.fix) == "replicas: {min: 1, max: 3}"


# -- time slices -----------------------------------------------------------------------------------------------------


SMALL = "source: Qwen/Qwen3-0.6B, context: 4096"
"""Two of it have room on the least slice that is tried."""


@pytest.mark.parametrize("gpu", ["L4-24GB", "A100-SXM-80GB"])
def test_sharing_without_isolation_uses_time_slices(gpu: str) -> None:
    rendered = of("{shares: 2}", gpu, chat=SMALL)
    for model in models(rendered):
        assert (model.gpu, model.gpus) == (f"{gpu}/2", 0.5)
        assert "no `isolation: hardware`" in because(model)
    assert rendered.plan.pools["pool"].gpu_resources == {"nvidia.com/gpu.shared": 2}


@pytest.mark.parametrize("slices", [2, 3, 4, 7])
def test_engines_of_a_time_sliced_gpu_fit_together(slices: int) -> None:
    for model in models(of(f"{{shares: {slices}}}", "A100-SXM-80GB", chat=SMALL)):
        assert 0.8 < model.gpu_memory_utilization * slices <= 0.92


def test_planned_budget_is_the_configured_utilization() -> None:
    """0.92 of a third is rounded down to hundredths: 0.30 of the GPU, which is 90 % of the third."""
    _, small = models(of("{shares: 3}", "A100-SXM-80GB"))
    assert small.gpu_memory_utilization == 0.3
    assert "(90% of 26.4 GiB)" in because(small, "memory")


def test_pinned_utilization_above_the_time_slice_is_refused() -> None:
    problem = refused("{shares: 2}", gpu="A100-SXM-80GB", small="engine: {gpu_memory_utilization: 0.6}")
    assert "exceeds the engine's part of the GPU, 0.5" in problem.message
    assert str(problem.fix).startswith("engine: {gpu_memory_utilization: 0.45}")
    assert problem.line == 7


def test_application_beside_vllm_is_refused_on_a_time_slice() -> None:
    speech = "source: microsoft/speecht5_tts, task: speak, pool: pool"
    problem = refused("{shares: 2}", gpu="A100-SXM-80GB", small=speech)
    assert "nothing limits the memory" in problem.message
    assert "isolation: hardware" in str(problem.fix)
    _, small = models(of("{shares: 2, isolation: hardware}", "A100-SXM-80GB", small=speech))
    assert small.gpu == "A100-SXM-80GB/3g.40gb"


def test_pinned_utilization_within_the_time_slice_is_kept() -> None:
    _, small = models(of("{shares: 2}", "A100-SXM-80GB", small="engine: {gpu_memory_utilization: 0.4}"))
    assert small.gpu_memory_utilization == 0.4


def test_models_of_one_service_share_a_whole_gpu() -> None:
    loaded = load(
        "fleet: f\nclusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}}}\npools: {p: {gpu: L4-24GB, nodes: 1}}\n"
        "models:\n  a: {source: Qwen/Qwen3-0.6B, context: 4096, service: s}\n"
        "  b: {source: Qwen/Qwen3-Embedding-0.6B, context: 4096, service: s, task: embed}\n"
    )
    rendered = render_plan(plan_fleet(loaded))
    assert rendered.plan.pools["p"].gpu_resources == {"nvidia.com/gpu": 1}
    assert all(model.gpu == "L4-24GB" and model.gpu_fraction < 1 for model in rendered.plan.models.values())


# -- refused ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sharing", "gpu", "path", "message", "fix"),
    [
        ("{}", "L4-24GB", "sharing", "`sharing` needs `shares` or `layout`", "shares: 2"),
        (
            "{shares: 2, layout: {3g.40gb: 2}}",
            "H100",
            "sharing",
            "`sharing` has either `shares` or `layout`",
            "remove `layout`",
        ),
        ("{layout: {3g.40gb: 2}, isolation: none}", "H100", "isolation", "which isolates", "isolation: hardware"),
        ("{shares: 2, isolation: hardware}", "L4-24GB", "isolation", "L4-24GB has no MIG", "isolation: none"),
        ("{layout: {1g.6gb: 2}}", "L4-24GB", "layout", "L4-24GB has no MIG", "sharing: {shares: 2}"),
        ("{layout: {3g.20gb: 2}}", "H100", "layout", "no MIG profile `3g.20gb`", "1g.10gb (7), 1g.20gb (4)"),
        ("{layout: {3g.40gb: 2, 1g.10gb: 1}}", "H100", "layout", "need 9 of its 8", "layout: {3g.40gb: 2}"),
        (
            "{layout: {4g.40gb: 1, 2g.20gb: 2}}",
            "H100",
            "layout",
            "start at some of the slices only",
            "{4g.40gb: 1, 2g.20gb: 1}",
        ),
        ("{shares: 8, isolation: hardware}", "H100", "shares", "at most 7 MIG instances", "shares: 7"),
        ("{shares: 2}", "MI300X-192GB", "shares", "cannot share one MI300X-192GB between pods", "gpuFraction"),
        ("{shares: 2}", "H100/3g.40gb", "gpu", "a pool lists whole GPUs", "sharing: {shares: 2}"),
    ],
)
def test_impossible_sharing_is_refused_with_a_line_and_a_fix(
    sharing: str, gpu: str, path: str, message: str, fix: str
) -> None:
    problem = refused(sharing, gpu=gpu)
    assert message in problem.message
    assert fix in str(problem.fix)
    assert (problem.path.rpartition(".")[2], problem.file, problem.line) == (path, "fleet.yaml", 4)


def test_sharing_of_different_hosts_is_refused() -> None:
    text = FLEET % ("X", 1, 1, "{shares: 2}", SMALL, SMALL)
    text = text.replace("gpu: X, nodes: 1, gpusPerNode: 1", "hosts: [{gpu: L4-24GB}, {gpu: T4-16GB}]")
    with pytest.raises(FleetError) as caught:
        render_plan(plan_fleet(load(text)))
    assert "with `hosts`" in caught.value.problems[0].message


def test_replica_over_several_parts_is_refused() -> None:
    problem = refused("{shares: 2, isolation: hardware}", chat="parallelism: {tensor: 2}")
    assert "no pool has the hosts for TP 2" in problem.message


# -- GPU operators ---------------------------------------------------------------------------------------------------


def platform(text: str) -> PlatformValues:
    (release,) = [one for one in render_plan(plan_fleet(load(text))).releases if one.chart == "platform"]
    assert isinstance(release.values, PlatformValues)
    return release.values


PLAIN = """\
fleet: f
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}%s}}
pools: {p: {gpu: %s, nodes: 1%s}}
models: {a: {source: Qwen/Qwen3-0.6B, context: 4096%s}}
"""
NODES = ", nodeSelector: {pool: p}, sharing: {shares: 2}"


def test_shared_pool_configures_the_nvidia_operator() -> None:
    (pool,) = of("{shares: 2, isolation: hardware}").releases[0].values.nvidia.pools.values()  # type: ignore[attr-defined]
    assert (pool.gpu, pool.mig, pool.replicas) == ("H100-SXM-80GB", {"3g.40gb": 2}, 0)
    assert pool.node_selector == {"pool": "shared"}


def test_fleet_without_sharing_configures_no_operator() -> None:
    found = platform(PLAIN % ("", "L4-24GB", "", ""))
    assert not found.nvidia.enabled
    assert not found.intel.enabled


def test_cluster_with_the_operator_configures_its_counters() -> None:
    found = platform(PLAIN % (", gpuOperator: {namespace: nvidia, clusterPolicy: true}", "L4-24GB", "", "")).nvidia
    assert (found.enabled, found.namespace, found.cluster_policy.manage) == (True, "nvidia", True)


def test_intel_gpus_are_shared_by_the_intel_plugin() -> None:
    nodes = NODES + ", image: {repository: registry.example/ray-vllm-xpu, tag: 2.60.0-py312}"
    found = platform(PLAIN % ("", "Arc-Pro-B60-24GB", nodes, ", pool: p"))
    assert found.intel.pools["p"].shared_dev_num == 2
    assert not found.nvidia.enabled


def test_shared_pool_without_node_selector_is_refused() -> None:
    with pytest.raises(FleetError) as caught:
        platform(PLAIN % ("", "L4-24GB", ", sharing: {shares: 2}", ""))
    (problem,) = caught.value.problems
    assert "`nodeSelector` names none" in problem.message
    assert problem.fix.value == {"example.com/pool": "p"}
    assert (problem.path, problem.line) == ("pools.p", 3)


def test_services_use_the_priority_classes_of_the_platform() -> None:
    rendered = of("{shares: 2}", chat=SMALL)
    classes = platform(PLAIN % ("", "L4-24GB", "", "")).priority_classes
    for values in rendered.values.values():
        assert values.head.priority_class_name == classes.head.name
        assert {group.priority_class_name for group in values.worker_groups.values()} == {classes.workers.name}
    gateway = next(one.values for one in rendered.releases if one.chart == "gateway")
    assert gateway.priority_class_name == classes.gateway.name  # type: ignore[attr-defined]


def test_pods_have_the_runtime_class_of_their_pool() -> None:
    rendered = render_plan(plan_fleet(load(PLAIN % ("", "L4-24GB", ", runtimeClass: nvidia", ""))))
    assert rendered.values["a"].worker_groups["p"].runtime_class_name == "nvidia"


def test_model_above_a_time_slice_is_not_split_over_slices() -> None:
    text = """
fleet: small
pools: {gpu: {gpu: L4-24GB, nodes: 4, gpusPerNode: 1, sharing: {shares: 2, isolation: none}}}
models:
  chat: {source: Qwen/Qwen3-8B, unpinnedReason: an example, context: 8192, replicas: 1}
"""
    with pytest.raises(FleetError) as caught:
        plan(text)
    (problem,) = caught.value.problems
    assert str(problem.fix).startswith("l4-24gb: {gpu: L4-24GB, nodes: 1}")
    assert not any("parallelism" in str(fix) for fix in problem.alternatives)


MIG = """
fleet: mig
clusters: {main: {gpuFeatureDiscovery: true}}
pools: {p: {gpu: H100-SXM-80GB, nodes: 2, gpusPerNode: 8, sharing: {shares: 7, isolation: hardware}}}
models:
  a: {source: Qwen/Qwen3-4B, context: 8192, traffic: {requestsPerSecond: 20, inputTokens: 500, outputTokens: 150}}
  b: {source: Qwen/Qwen3-8B-AWQ, context: 8192, traffic: {requestsPerSecond: 5, inputTokens: 500, outputTokens: 150}}
"""


def test_model_that_an_instance_is_too_small_for_is_offered_larger_instances() -> None:
    with pytest.raises(FleetError) as caught:
        plan(MIG)
    problem = caught.value.problems[0]
    check_fixes(MIG, [problem], plan)
    assert isinstance(problem.fix, Fix)
    assert (problem.fix.path, problem.fix.value) == ("pools.p.sharing.shares", 3)
    assert problem.fix.why == "MIG 3 x 2g.20gb per GPU, 19.6 GiB each"
    found = plan(MIG.replace("shares: 7", "shares: 3")).models
    assert {each.gpu for each in found.values()} == {"H100-SXM-80GB/2g.20gb"}


def test_model_that_a_time_slice_is_too_small_for_is_offered_larger_slices() -> None:
    text = MIG.replace(", isolation: hardware", "").replace("shares: 7", "shares: 12")
    with pytest.raises(FleetError) as caught:
        plan(text)
    problem = caught.value.problems[0]
    check_fixes(text, [problem], plan)
    assert isinstance(problem.fix, Fix)
    assert problem.fix.path == "pools.p.sharing.shares"
    assert "time slices per GPU" in problem.fix.why
