"""Bounds of a tenant's requests, and its limit of tokens, in the fleet file."""

import pytest

from rayhelm.deploy.compose.gateway import build_gateways
from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.deploy.values.gateway import GatewayValues
from shared.apply_fix import check_fixes
from shared.fleets import load, plan
from shared.small_fleet import problems

FLEET = """\
fleet: small
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}, gateway: {allowedClients: [web]}}}
pools: {gpu: {gpu: L4-24GB, nodes: 4}}
tenants: {a: {models: [chat]BOUNDS}}
models:
  chat: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, pool: gpu}
"""


def build(bounds: str) -> GatewayValues:
    text = FLEET.replace("BOUNDS", bounds)
    planned = plan(text)
    (values,) = build_gateways(planned, build_ray_service_values(planned)).values()
    return values


def test_bounds_are_in_the_gateway_values() -> None:
    values = build(", maxOutputTokens: {chat: 512}, maxBodyBytes: {chat: 65536}")
    assert values.tenants["a"].max_output_tokens == {"chat": 512}
    assert values.tenants["a"].max_body_bytes == {"chat": 65536}
    assert values.tenants["a"].without_max_tokens == "Refuse"


def test_bound_takes_each_name_that_a_model_can_have() -> None:
    text = FLEET.replace("BOUNDS", ", maxOutputTokens: {Qwen/Chat.1: 512}")
    bounds = load(text.replace("[chat]", "[Qwen/Chat.1]").replace("  chat:", "  Qwen/Chat.1:")).fleet.tenants["a"]
    assert bounds.max_output_tokens == {"Qwen/Chat.1": 512}


@pytest.mark.parametrize("key", ["maxOutputTokens", "maxBodyBytes"])
@pytest.mark.parametrize(
    ("bound", "message", "fix"),
    [
        ("{chat: 0}", "0", ""),
        ("{chta: 5}", "`chta` is no model", "chat: 5"),
        ("{other: 5}", "`other` is not one of the models of the tenant", "# remove `other`"),
        ("{elsewhere: 5}", "`elsewhere` is no model", "# remove `elsewhere`"),
    ],
)
def test_bound_that_cannot_hold_is_refused(key: str, bound: str, message: str, fix: str) -> None:
    other = "  other: {source: Qwen/Qwen3-0.6B, context: 4096, servedAs: {model: chat, version: next}}\n"
    text = FLEET.replace("BOUNDS", f", {key}: {bound}") + other
    (problem,) = problems(text)
    assert problem.path.startswith(f"tenants.a.{key}")
    assert problem.line == 4
    assert message in problem.message
    assert fix in problem.fix_text
    check_fixes(text, [problem], load)


def test_token_limit_is_in_the_gateway_values() -> None:
    assert build("").tenants["a"].tokens_per_minute is None
    assert build(", tokensPerMinute: 1000").tenants["a"].tokens_per_minute == 1000


@pytest.mark.parametrize("limit", ["0", "-1", "1.5", "many"])
def test_token_limit_that_cannot_hold_is_refused(limit: str) -> None:
    (problem,) = problems(FLEET.replace("BOUNDS", f", tokensPerMinute: {limit}"))
    assert problem.path == "tenants.a.tokensPerMinute"


def test_token_limit_without_counted_models_is_refused() -> None:
    text = FLEET.replace("BOUNDS", ", tokensPerMinute: 1000").replace("[chat]", "[ears]")
    text = text.replace("tenants: {", "tenants: {b: {models: [chat]}, ")
    ears = "  ears: {source: openai/whisper-large-v3, task: transcribe, pool: gpu}\n"
    (problem,) = problems(text + ears)
    assert problem.path == "tenants.a.tokensPerMinute"
    assert "no effect" in problem.message
    load(text.replace("[ears]", "[ears, chat]") + ears)


def test_longest_context_of_the_versions_of_a_model_bounds_its_reports() -> None:
    other = "  other: {source: Qwen/Qwen3-0.6B, context: 8192, servedAs: {model: chat, version: next, weight: 10}}\n"
    text = FLEET.replace("BOUNDS", "") + other
    planned = plan(text)
    (values,) = build_gateways(planned, build_ray_service_values(planned)).values()
    assert values.models["chat"].context_tokens == 8192
    assert build("").models["chat"].context_tokens == 4096
