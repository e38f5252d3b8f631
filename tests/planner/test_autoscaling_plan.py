"""How Serve's autoscaler is set by a plan, and limits that can never be reached."""

import pytest
import yaml

from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.errors import FleetError, Problem
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import parse_fleet
from rayhelm.planner.plan import ModelPlan, Plan
from rayhelm.planner.planner import plan_fleet

FLEET = """\
fleet: one
clusters: {main: {weights: {readSpeed: %s}}}
pools:
  pool: {gpu: L4-24GB, nodes: 4, gpusPerNode: 2}
models:
  chat: {source: Qwen/Qwen3-8B, context: 4096, %s}
"""
BUSY = "traffic: {requestsPerSecond: 7, inputTokens: 1000, outputTokens: 200}"
TWO = """\
fleet: two
pools:
  pool: {gpu: L4-24GB, nodes: 4}
models:
  chat: {source: Qwen/Qwen3-8B, context: 4096, replicas: {min: 1, max: %d}}
  other: {source: Qwen/Qwen3-4B, context: 4096, replicas: {min: 1, max: 2}}
"""


def plan(text: str) -> Plan:
    return plan_fleet(parse_fleet(parse_document(text, "fleet.yaml")))


def chat(more: str, speed: str = "1GB/s") -> ModelPlan:
    return plan(FLEET % (speed, more)).models["chat"]


def refused(text: str) -> Problem:
    with pytest.raises(FleetError) as caught:
        plan(text)
    (problem,) = caught.value.problems
    return problem


def reasons(model: ModelPlan) -> dict[str, str]:
    return {reason.decision: reason.because for reason in model.reasons}


def test_target_is_the_planned_part_of_the_concurrency() -> None:
    model = chat(BUSY)
    (reason,) = (reason for reason in model.reasons if reason.decision == "target_ongoing_requests")
    assert model.target_ongoing_requests == int(float(reason.numbers["concurrency"]) * 0.75)
    assert reason.chosen == str(model.target_ongoing_requests)
    assert "limited by" in reason.because


def test_start_of_a_node_is_part_of_the_load_time() -> None:
    text = FLEET % ("1GB/s", BUSY)
    before = plan(text).models["chat"]
    after = plan(text.replace("gpusPerNode: 2}", "gpusPerNode: 2, nodeStart: 20m}")).models["chat"]
    assert after.scaling.load_s == pytest.approx(before.scaling.load_s + 1200, abs=1)
    assert after.scaling.downscale_delay_s >= 2 * after.scaling.load_s > before.scaling.downscale_delay_s
    assert "1200 s for a new node (`nodeStart`)" in reasons(after)["load_s"]
    assert "New nodes and image pulls take additional time" in reasons(before)["load_s"]


def test_load_time_is_weights_over_read_speed_plus_engine_start() -> None:
    model = chat(BUSY)
    assert model.tensor_parallel_size * model.pipeline_parallel_size == 2  # the GPUs of one node
    gib = sum(stage.weights_gib for stage in model.stages) * model.tensor_parallel_size
    assert model.scaling.load_s == pytest.approx(gib * 2**30 / 1e9 + 120, abs=1)
    assert "from the fleet file" in reasons(model)["load_s"]


def test_assumed_read_speed_is_stated() -> None:
    model = plan((FLEET % ("1GB/s", BUSY)).replace("clusters: {main: {weights: {readSpeed: 1GB/s}}}\n", "")).models[
        "chat"
    ]
    assert "assumed" in reasons(model)["load_s"]


@pytest.mark.parametrize(
    ("read_speed", "network", "gib_per_s", "because"),
    [
        (None, "ethernet-1g", 0.125e9 / 2**30, "the rate of network `ethernet-1g`"),
        (None, "ethernet-100g", 0.5, "assumed"),
        (None, "internet", 0.5, "assumed"),
        ("2GB/s", "ethernet-1g", 2e9 / 2**30, "from the fleet file"),
    ],
    ids=["slow-network", "fast-network", "unknown-network", "stated"],
)
def test_load_time_follows_the_network_of_the_pool(
    read_speed: str | None, network: str, gib_per_s: float, because: str
) -> None:
    text = FLEET % (read_speed, BUSY)
    text = text.replace("gpusPerNode: 2", f"gpusPerNode: 2, network: {network}").replace("{readSpeed: None}", "{}")
    model = plan(text).models["chat"]
    (found,) = (reason for reason in model.reasons if reason.decision == "load_s")
    assert found.numbers["gib_per_s"] == pytest.approx(gib_per_s, abs=1e-3)
    gib = found.numbers["weights_gib_per_node"]
    assert isinstance(gib, float)
    assert model.scaling.load_s == pytest.approx(gib / gib_per_s + 120, abs=1)
    assert because in found.because


def test_slow_volumes_lengthen_the_downscale_delay() -> None:
    slow, fast = chat(BUSY, "20MB/s").scaling, chat(BUSY, "10GB/s").scaling
    assert (fast.upscale_delay_s, fast.downscale_delay_s) == (15, 600)
    assert slow.upscale_delay_s == 60
    assert slow.downscale_delay_s >= 2 * slow.load_s > 600
    assert slow.downscale_delay_s % 30 == 0


def test_initial_replicas_are_those_of_the_planned_load() -> None:
    model = chat(BUSY)
    assert (model.min_replicas, model.scaling.initial_replicas) == (1, model.replicas)
    assert model.replicas > 1
    assert "takes over" in reasons(model)["initial_replicas"]


def test_fixed_replicas_have_no_scaling_reasons() -> None:
    assert (
        not {"load_s", "initial_replicas", "upscale_delay_s", "target_ongoing_requests"}
        & reasons(chat("replicas: 2")).keys()
    )


def test_last_replica_has_a_longer_downscale_delay() -> None:
    sleeper, awake = chat("replicas: {min: 0, max: 2}"), chat("replicas: {min: 1, max: 2}")
    assert sleeper.scaling.downscale_to_zero_delay_s == 3 * sleeper.scaling.downscale_delay_s
    assert "whole load" in reasons(sleeper)["downscale_to_zero_delay_s"]
    assert awake.scaling.downscale_to_zero_delay_s is None


@pytest.mark.parametrize(
    ("pool", "room"),
    [
        ("{gpu: L4-24GB, nodes: 1, gpusPerNode: 2}", 2),
        ("{hosts: [{gpu: L4-24GB, gpus: 2, nodeSelector: {gpu: l4}}, {gpu: T4-16GB, nodeSelector: {gpu: t4}}]}", 2),
    ],
)
def test_max_replicas_beyond_the_pool_are_refused(pool: str, room: int) -> None:
    model = "{source: Qwen/Qwen3-8B, context: 4096, replicas: {min: 1, max: %d}}"
    text = f"fleet: one\npools: {{pool: %s}}\nmodels:\n  chat: {model}\n"
    problem = refused(text % (pool, 9))
    assert f"room for {room}" in problem.message
    assert str(problem.fix) == f"replicas: {{min: 1, max: {room}}}"
    assert (problem.line, problem.path) == (4, "models.chat.replicas.max")
    assert plan(text % (pool, room)).models["chat"].max_replicas == room


def test_max_replicas_leave_the_minimum_of_other_models() -> None:
    problem = refused(TWO % 4)
    assert "pool `pool` has 4 GPUs, of which other models always use 1: room for 3" in problem.message
    assert [(fix.path, fix.value) for fix in problem.alternatives] == [("pools.pool.nodes", 5)]
    assert plan(TWO % 3).models["chat"].max_replicas == 3


def test_max_replicas_beyond_the_tenant_limit_are_refused() -> None:
    text = TWO + "tenants: {team: {gpus: %d}}\nservices: {chat: {tenant: team}, other: {tenant: team}}\n"
    problem = refused(text % (3, 3))
    assert "tenant `team` may use 3 GPUs, of which its other models always use 1: room for 2" in problem.message
    assert str(problem.fix) == "replicas: {min: 1, max: 2}"
    assert [(fix.path, fix.value) for fix in problem.alternatives] == [("tenants.team.gpus", 4)]
    both = refused(text % (5, 3))
    assert str(both.fix) == "replicas: {min: 1, max: 2}"
    assert not both.alternatives
    assert plan(text % (3, 4)).models["chat"].max_replicas == 3


# -- the policy of the engines ---------------------------------------------------------------------------------------

ASKING = """\
fleet: one
clusters:
  main:
    apiServer: {{cidrs: [10.0.0.1/32]}}
    {prometheus}
    {image}
pools:
  pool: {{gpu: L4-24GB, nodes: 4{pool}}}
models:
  chat:
    source: Qwen/Qwen3-8B
    context: 4096
    scaling: engine-queue
    slo: {{ttft: 800ms}}
    replicas: {{min: 1, max: 3}}
"""
PROMETHEUS = "prometheus: {url: http://prometheus.metrics:9091, namespace: metrics}"
IMAGE = "image: {repository: registry.example/ray, tag: ours, includesRayhelm: true}"


def fleet_text(prometheus: str = PROMETHEUS, image: str = IMAGE, pool: str = "") -> str:
    return ASKING.format(prometheus=prometheus, image=image, pool=pool)


def values(text: str) -> RayServiceValues:
    loaded = parse_fleet(parse_document(text, "fleet.yaml"))
    with loaded.document.joined():
        return build_ray_service_values(plan_fleet(loaded))["chat"]


def test_engine_queue_policy_gets_its_slo_and_egress() -> None:
    found = values(fleet_text())
    policy = found.serve.applications["chat"].models["chat"].autoscaling.policy
    assert (policy.kind, policy.ttft_seconds) == ("EngineQueue", 0.8)
    assert found.serve.prometheus.url == "http://prometheus.metrics:9091"
    api = found.network_policy.prometheus_api
    assert (api.peer.namespace, api.port) == ("metrics", 9091)
    assert found.image.includes_rayhelm


def test_plan_says_that_the_fleet_file_set_the_policy() -> None:
    text = fleet_text()
    assert "time to first token, 0.8 s" in reasons(plan(text).models["chat"])["scaling"]


@pytest.mark.parametrize(
    ("lack", "message"),
    [
        ({"prometheus": "weights: {}"}, "cluster `main` has none"),
        ({"image": "redis: null"}, "the image of cluster `main` lacks rayhelm"),
        ({"image": IMAGE.replace(", includesRayhelm: true", "")}, "the image of cluster `main` lacks rayhelm"),
        ({"pool": ", image: {repository: registry.example/rocm, tag: a}"}, "the image of pool `pool` lacks rayhelm"),
    ],
)
def test_engine_queue_policy_needs_prometheus_and_an_image(lack: dict[str, str], message: str) -> None:
    with pytest.raises(FleetError) as caught:
        values(fleet_text(**lack))
    (problem,) = caught.value.problems
    assert message in problem.message
    assert (problem.line, problem.path) == (13, "models.chat.scaling")
    document = yaml.safe_load(fleet_text(**lack))
    for section, entries in yaml.safe_load(problem.fix_text).items():
        for name, keys in entries.items():
            document[section][name].update(keys)
    assert values(yaml.safe_dump(document)).image.includes_rayhelm


def test_engine_queue_policy_is_refused_without_an_engine() -> None:
    text = fleet_text().replace("source: Qwen/Qwen3-8B", "source: /m")
    custom = "task: custom\n    application: {importPath: a.b:c, deployment: D}\n    scaling"
    assert "has no vLLM engine" in refused(text.replace("scaling", custom)).message
