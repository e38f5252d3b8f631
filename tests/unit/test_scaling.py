"""How Serve's autoscaler is set by a plan, and limits that can never be reached."""

import pytest

from rayhelm.errors import FleetError, Problem
from rayhelm.planner.plan import ModelPlan, Plan
from rayhelm.planner.planner import plan_fleet
from rayhelm.spec.document import parse_document
from rayhelm.spec.load import fleet_of

FLEET = """\
fleet: one
clusters: {main: {weights: {readSpeed: %s}}}
pools:
  pool: {gpu: L4-24GB, nodes: 4, gpusPerNode: 2}
models:
  chat: {source: Qwen/Qwen3-8B, context: 4096, %s}
"""
BUSY = "traffic: {requestsPerSecond: 10, inputTokens: 1000, outputTokens: 200}"
TWO = """\
fleet: two
pools:
  pool: {gpu: L4-24GB, nodes: 4}
models:
  chat: {source: Qwen/Qwen3-8B, context: 4096, replicas: {min: 1, max: %d}}
  other: {source: Qwen/Qwen3-4B, context: 4096, replicas: {min: 1, max: 2}}
"""


def plan(text: str) -> Plan:
    return plan_fleet(fleet_of(parse_document(text, "fleet.yaml")))


def chat(more: str, speed: str = "1GB/s") -> ModelPlan:
    return plan(FLEET % (speed, more)).models["chat"]


def refused(text: str) -> Problem:
    with pytest.raises(FleetError) as caught:
        plan(text)
    (problem,) = caught.value.problems
    return problem


def reasons(model: ModelPlan) -> dict[str, str]:
    return {reason.decision: reason.because for reason in model.reasons}


def test_the_target_is_the_planned_part_of_what_a_replica_can_have_in_flight() -> None:
    model = chat(BUSY)
    (reason,) = (reason for reason in model.reasons if reason.decision == "target_ongoing_requests")
    assert model.target_ongoing_requests == int(float(reason.numbers["concurrency"]) * 0.75)
    assert reason.chosen == str(model.target_ongoing_requests)
    assert "bound by" in reason.because


def test_a_load_is_weights_over_read_speed_and_the_start_of_the_engine() -> None:
    model = chat(BUSY)
    (stage,) = model.stages
    gib = stage.weights_gib * model.tensor_parallel_size
    assert model.scaling.load_s == pytest.approx(gib * 2**30 / 1e9 + 120, abs=1)
    assert "by the fleet file" in reasons(model)["load_s"]


def test_an_assumed_read_speed_says_so() -> None:
    model = plan((FLEET % ("1GB/s", BUSY)).replace("clusters: {main: {weights: {readSpeed: 1GB/s}}}\n", "")).models[
        "chat"
    ]
    assert "assumed" in reasons(model)["load_s"]


def test_slow_volumes_make_the_autoscaler_slower_to_give_up_a_replica() -> None:
    slow, fast = chat(BUSY, "20MB/s").scaling, chat(BUSY, "10GB/s").scaling
    assert (fast.upscale_delay_s, fast.downscale_delay_s) == (15, 600)
    assert slow.upscale_delay_s == 60
    assert slow.downscale_delay_s >= 2 * slow.load_s > 600
    assert slow.downscale_delay_s % 30 == 0


def test_a_new_cluster_begins_with_what_the_planned_load_needs() -> None:
    model = chat(BUSY)
    assert (model.min_replicas, model.scaling.initial_replicas) == (1, model.replicas)
    assert model.replicas > 1
    assert "takes over" in reasons(model)["initial_replicas"]


def test_fixed_replicas_have_no_reasons_of_scaling() -> None:
    assert (
        not {"load_s", "initial_replicas", "upscale_delay_s", "target_ongoing_requests"}
        & reasons(chat("replicas: 2")).keys()
    )


def test_the_last_replica_stays_longer_before_nothing_is_left() -> None:
    sleeper, awake = chat("replicas: {min: 0, max: 2}"), chat("replicas: {min: 1, max: 2}")
    assert sleeper.scaling.downscale_to_zero_delay_s == 3 * sleeper.scaling.downscale_delay_s
    assert "whole load" in reasons(sleeper)["downscale_to_zero_delay_s"]
    assert awake.scaling.downscale_to_zero_delay_s is None


@pytest.mark.parametrize(
    ("pool", "room"),
    [
        ("{gpu: L4-24GB, nodes: 1, gpusPerNode: 2}", 2),
        ("{hosts: [{gpu: L4-24GB, gpus: 2}, {gpu: T4-16GB}], network: internet}", 2),
    ],
)
def test_more_replicas_than_the_pool_has_cards_for_are_refused(pool: str, room: int) -> None:
    model = "{source: Qwen/Qwen3-8B, context: 4096, replicas: {min: 1, max: %d}}"
    text = f"fleet: one\npools: {{pool: %s}}\nmodels:\n  chat: {model}\n"
    problem = refused(text % (pool, 9))
    assert f"room for {room}" in problem.message
    assert problem.mend == f"replicas: {{min: 1, max: {room}}}"
    assert (problem.line, problem.path) == (4, "models.chat.replicas.max")
    assert plan(text % (pool, room)).models["chat"].max_replicas == room


def test_cards_that_another_model_always_holds_are_out_of_reach() -> None:
    problem = refused(TWO % 4)
    assert "pool `pool` has 4 cards, of which other models always hold 1: room for 3" in problem.message
    assert plan(TWO % 3).models["chat"].max_replicas == 3


def test_a_limit_beyond_what_its_owner_may_hold_is_refused() -> None:
    text = TWO + "tenants: {team: {gpus: %d}}\nservices: {chat: {tenant: team}, other: {tenant: team}}\n"
    problem = refused(text % (3, 3))
    assert "tenant `team` may hold 3 cards, of which its other models always hold 1: room for 2" in problem.message
    assert problem.mend == "replicas: {min: 1, max: 2}"
    assert plan(text % (3, 4)).models["chat"].max_replicas == 3
