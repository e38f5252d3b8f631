"""What vLLM refuses at its start, and what a model refuses of a request that the gateway lets through, is refused
before."""

import pytest

from rayhelm.errors import FleetError
from shared.apply_fix import check_fixes
from shared.fleets import plan, refused

FLEET = """
fleet: test
pools: {POOLS}
models:
  chat: {source: SOURCE, unpinnedReason: an example, context: 4096, replicas: 1, engine: ENGINE}
tenants:
  apps: {models: [chat], maxOutputTokens: {chat: BOUND}}
"""
AWQ, PLAIN = "Qwen/Qwen3-8B-AWQ", "Qwen/Qwen2.5-0.5B-Instruct"
L4, T4 = "gpu: {gpu: L4-24GB, nodes: 1}", "gpu: {gpu: T4-16GB, nodes: 1}"


def write(source: str = PLAIN, engine: str = "{}", pools: str = L4, bound: int = 1024) -> str:
    text = FLEET.replace("SOURCE", source).replace("ENGINE", engine).replace("POOLS", pools)
    return text.replace("BOUND", str(bound))


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        (
            write(AWQ, "{quantization: fp8}"),
            "models.chat.engine.quantization",
            "the weights of Qwen/Qwen3-8B-AWQ are awq",
        ),
        (write(AWQ, "{quantization: gptq}"), "models.chat.engine.quantization", "vLLM refuses it"),
        (write(engine="{dtype: bfloat16}", pools=T4), "models.chat", "does not compute in bfloat16"),
        (
            write("BAAI/bge-reranker-v2-m3", "{max_num_batched_tokens: 2048}").replace("replicas: 1", "task: rerank"),
            "models.chat.engine.max_num_batched_tokens",
            "is 2048, and inputs of BAAI/bge-reranker-v2-m3 have up to 4096 tokens",
        ),
        (
            write(
                engine="{disable_hybrid_kv_cache_manager: false, kv_transfer_config: {kv_connector: LMCacheConnectorV1,"
                " kv_role: kv_both}}"
            ),
            "models.chat.engine.disable_hybrid_kv_cache_manager",
            "does not work with the hybrid cache manager",
        ),
        (write(bound=4097), "tenants.apps.maxOutputTokens.chat", "the context of `chat` is 4096 tokens"),
    ],
    ids=[
        "fp8-of-awq",
        "gptq-of-awq",
        "bfloat16-on-t4",
        "batch-of-encoder",
        "hybrid-cache-of-lmcache",
        "bound-above-context",
    ],
)
def test_setting_that_the_engine_refuses_has_a_fix(text: str, path: str, message: str) -> None:
    with pytest.raises(FleetError) as caught:
        plan(text)
    (problem,) = caught.value.problems
    assert problem.path == path
    assert message in problem.message
    check_fixes(text, [problem], plan)


@pytest.mark.parametrize(
    "text",
    [
        write(AWQ, "{quantization: awq_marlin}"),
        write(AWQ, "{quantization: moe_wna16}"),
        write(PLAIN, "{quantization: fp8}"),
        write(engine="{dtype: half}", pools=T4),
        write(engine="{dtype: bfloat16}"),
        write(bound=4096),
    ],
    ids=["kernel", "reads-several", "quantized-while-loading", "half", "bfloat16-on-l4", "bound-of-context"],
)
def test_setting_that_the_engine_accepts_is_planned(text: str) -> None:
    assert plan(text).models["chat"].replicas == 1


def test_bfloat16_goes_to_the_pool_that_computes_in_it() -> None:
    old, new = (f"{{gpu: {gpu}, nodes: 1, nodeSelector: {{kind: {gpu}}}}}" for gpu in ("T4-16GB", "L4-24GB"))
    pools = f"old: {old}, new: {new}"
    assert plan(write(engine="{dtype: bfloat16}", pools=pools)).models["chat"].pool == "new"


def test_draft_model_of_the_hub_that_nothing_downloads_is_refused() -> None:
    config = "{model: Qwen/Qwen3-0.6B, num_speculative_tokens: 3}"
    model = f"{{source: Qwen/Qwen3-8B, context: 4096, engine: {{speculative_config: {config}}}}}"
    problem = refused("{gpu: L4-24GB, nodes: 2}", model)
    assert "the Job downloads `source` only" in problem.message
    assert problem.fix.value == {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}
    draft = "models: {draft: {source: Qwen/Qwen3-0.6B, context: 4096, service: model}, model: "
    assert plan(f"fleet: a\npools: {{gpu: {{gpu: L4-24GB, nodes: 2}}}}\n{draft}{model}}}\n")
