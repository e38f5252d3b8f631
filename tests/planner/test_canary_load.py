"""A version without `traffic` is planned for the part of the load that its weight sends."""

import pytest

from rayhelm.errors import UsageError
from rayhelm.planner.plan import ModelPlan
from rayhelm.planner.what_if import parse_changes
from shared.fleets import load, plan

FLEET = """\
fleet: f
pools:
  big: {gpu: H100-SXM-80GB, nodes: 8, gpusPerNode: 8}
models:
  chat:
    source: Qwen/Qwen3-8B
    context: 8192
    pool: big
    traffic: {requestsPerSecond: 200, inputTokens: 1000, outputTokens: 200}
  next: {source: Qwen/Qwen3-8B-AWQ, context: 8192, pool: big, MORE}
"""


def canary(more: str) -> ModelPlan:
    return plan(FLEET.replace("MORE", more)).models["next"]


def served_as(weight: int) -> str:
    return f"servedAs: {{model: chat, version: next, weight: {weight}}}"


def test_load_and_price_follow_the_weight() -> None:
    small, large = canary(served_as(5)), canary(served_as(50))
    assert small.replicas < large.replicas
    assert small.price_per_million_output_tokens
    assert "the load is 10 requests/s, the part of `chat` that `servedAs.weight` sends" in str(small.reasons)
    written = canary(f"traffic: {{requestsPerSecond: 100, inputTokens: 1000, outputTokens: 200}}, {served_as(50)}")
    assert (large.replicas, large.price_per_hour) == (written.replicas, written.price_per_hour)


def test_model_keeps_replicas_for_all_requests() -> None:
    alone = plan(FLEET.replace("  next:", "  other:").replace(", MORE", "")).models["chat"]
    assert plan(FLEET.replace("MORE", served_as(50))).models["chat"].replicas == alone.replicas


@pytest.mark.parametrize("more", [served_as(0), "replicas: 2"])
def test_model_without_a_part_of_the_requests_has_no_load(more: str) -> None:
    assert load(FLEET.replace("MORE", more)).fleet.models["next"].traffic is None


def test_load_of_a_weight_is_changed_at_its_model() -> None:
    loaded = load(FLEET.replace("MORE", served_as(20)))
    with pytest.raises(UsageError, match="`next` has no `traffic` in the fleet file"):
        parse_changes("next.traffic=2x", loaded)
