"""Workers without GPUs, on which the ingress runs if a model can scale to zero."""

import pytest

from rayhelm.deploy.compose.tenant import build_tenant_values
from rayhelm.deploy.render.files import render_plan
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.errors import FleetError
from rayhelm.planner.plan import Plan
from rayhelm.planner.planner import plan_fleet
from shared.apply_fix import check_fixes
from shared.fleets import load

CHAT = "{source: Qwen/Qwen3-8B, context: 8192, unpinnedReason: an example, replicas: %s}"
SPEAK = "{source: microsoft/speecht5_tts, task: speak, replicas: %s}"


def fleet(models: dict[str, str], *, pool: str = "gpu", values: str = "{}") -> str:
    """One service with these models."""
    lines = "".join(f"  {name}: {model[:-1]}, service: one}}\n" for name, model in models.items())
    return (
        "fleet: zero\n"
        "clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}, image: {repository: r/ours, tag: '1'}}}\n"
        f"pools: {{{pool}: {{gpu: L4-24GB, nodes: 16, gpusPerNode: 1}}}}\n"
        f"services: {{one: {{values: {values}}}}}\n"
        f"models:\n{lines}"
    )


def plan(text: str) -> Plan:
    return plan_fleet(load(text))


def values(text: str) -> RayServiceValues:
    return render_plan(plan_fleet(load(text))).values["one"]


def test_ingress_runs_on_a_worker_without_gpus_when_a_model_scales_to_zero() -> None:
    built = values(fleet({"a": CHAT % "{min: 0, max: 4}"}))
    gpu, ingress = built.worker_groups["gpu"], built.worker_groups["ingress"]
    assert (gpu.min_replicas, gpu.max_replicas) == (0, 4)
    assert (ingress.gpu.count, ingress.min_replicas, ingress.max_replicas) == (0, 1, 1)
    assert built.serve.applications["a"].ingress.worker_group == "ingress"
    assert not ingress.mounts_weights
    assert ingress.min_available == 0


def test_ingress_runs_on_gpu_workers_when_no_model_scales_to_zero() -> None:
    built = values(fleet({"a": CHAT % "{min: 1, max: 4}"}))
    assert list(built.worker_groups) == ["gpu"]
    assert built.serve.applications["a"].ingress.worker_group == ""


def test_all_ingresses_of_a_service_leave_gpu_workers_when_one_model_scales_to_zero() -> None:
    text = fleet({"a": CHAT % "{min: 2, max: 4}", "b": CHAT % "{min: 0, max: 2}"})
    built = values(text)
    assert {each.ingress.worker_group for each in built.serve.applications.values()} == {"ingress"}
    # Two, because model a has two replicas, and the loss of one worker must not take its only ingress.
    group = built.worker_groups["ingress"]
    assert (group.min_replicas, group.max_replicas, group.min_available) == (2, 2, 1)
    assert "kubernetes.io/hostname" in group.spread


def test_one_worker_has_the_ingresses_of_three_models() -> None:
    models = dict.fromkeys("abcd", CHAT % "{min: 0, max: 1}")
    workers = plan(fleet(models)).services["one"].workers["ingress"]
    assert (workers.min_pods, workers.max_pods, workers.gpus) == (2, 2, 0)


def test_group_of_the_ingress_has_another_name_than_a_pool() -> None:
    built = values(fleet({"a": CHAT % "{min: 0, max: 4}"}, pool="ingress"))
    assert built.serve.applications["a"].ingress.worker_group == "ingress-2"
    assert built.worker_groups["ingress-2"].gpu.count == 0


def test_plan_says_that_workers_of_the_ingress_stay() -> None:
    model = plan(fleet({"a": CHAT % "{min: 0, max: 4}"})).models["a"]
    (reason,) = [each for each in model.reasons if each.decision == "ingress"]
    assert "These workers stay" in reason.because


def test_nodes_and_number_of_the_ingress_workers_can_be_overridden() -> None:
    own = "{nodeSelector: {pool: cpu}, tolerations: [{key: cpu}], minReplicas: 2, maxReplicas: 2}"
    text = fleet({"a": CHAT % "{min: 0, max: 4}"}, values=f"{{workerGroups: {{ingress: {own}}}}}")
    group = values(text).worker_groups["ingress"]
    assert group.node_selector == {"pool": "cpu"}
    assert group.min_replicas == 2


def test_nodes_of_a_pool_cannot_be_overridden() -> None:
    text = fleet({"a": CHAT % "{min: 0, max: 4}"}, values="{workerGroups: {gpu: {nodeSelector: {pool: cpu}}}}")
    with pytest.raises(FleetError, match=r"pools\.gpu\.nodeSelector"):
        render_plan(plan_fleet(load(text)))


def test_own_application_alone_cannot_scale_to_zero() -> None:
    text = fleet({"a": SPEAK % "{min: 0, max: 2}"})
    with pytest.raises(FleetError) as caught:
        plan_fleet(load(text))
    (problem,) = caught.value.problems
    assert problem.path == "models.a.replicas"
    assert "accepts requests" in problem.message
    check_fixes(text, [problem], lambda fixed: plan_fleet(load(fixed)))


def test_own_application_scales_to_zero_beside_a_model_with_an_ingress() -> None:
    text = fleet({"a": SPEAK % "{min: 0, max: 2}", "b": CHAT % "{min: 1, max: 2}"})
    assert values(text).serve.applications["b"].ingress.worker_group == "ingress"


def test_fewer_than_zero_replicas_are_refused() -> None:
    text = fleet({"a": CHAT % "{min: -1, max: 2}"})
    with pytest.raises(FleetError) as caught:
        plan_fleet(load(text))
    (problem,) = caught.value.problems
    assert problem.path == "models.a.replicas.min"
    check_fixes(text, [problem], lambda fixed: plan_fleet(load(fixed)))


def test_pods_of_the_ingress_are_in_the_quota_of_the_tenant() -> None:
    models = dict.fromkeys("abc", CHAT % "{min: 0, max: 4}")
    text = fleet(models) + "tenants: {t: {gpus: 12, models: [a, b, c]}}\n"
    text = text.replace("services: {one: {", "services: {one: {tenant: t, ")
    rendered = render_plan(plan_fleet(load(text)))
    tenants = build_tenant_values(rendered.plan, rendered.values, {})
    (tenant,) = tenants.values()
    workers = sum(group.max_replicas for group in rendered.values["one"].worker_groups.values())
    assert workers == 12 + rendered.values["one"].worker_groups["ingress"].max_replicas
    assert tenant.quota.pods.baseline >= workers + 1
