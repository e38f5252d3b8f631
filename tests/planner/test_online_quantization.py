"""`quantization: fp8` of the engine quantizes a checkpoint of 16 bits when it is loaded."""

import pytest

from rayhelm.facts import load_catalog
from rayhelm.facts.tensors import count_weights
from rayhelm.planner.memory.online_quantization import quantize_at_load
from rayhelm.planner.plan import ModelPlan
from shared.fleets import one, plan

LLAMA = "meta-llama/Llama-3.3-70B-Instruct"
POOL = "{gpu: H100-SXM-80GB, nodes: 4, gpusPerNode: 8}"
LOAD = "traffic: {requestsPerSecond: 4, inputTokens: 1500, outputTokens: 300}, slo: {ttft: 2s, tpot: 50ms}"


def planned(source: str, more: str = "") -> ModelPlan:
    return one(POOL, f"{{source: {source}, context: 16384, {LOAD}{more}}}")


@pytest.mark.parametrize("method", ["fp8", "fp8_per_tensor", "fp8_per_channel", "fp8_per_block"])
def test_plan_counts_the_weights_that_the_engine_quantizes(method: str) -> None:
    whole, found = planned(LLAMA), planned(LLAMA, f", engine: {{quantization: {method}}}")
    published = planned("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic")
    assert (found.gpus, found.replicas, found.split) == (published.gpus, published.replicas, published.split)
    assert found.gpus * 2 == whole.gpus
    assert found.engine["quantization"] == method
    assert not [gap for gap in found.unknown if "quantization" in gap]


def test_download_and_load_time_are_those_of_the_published_checkpoint() -> None:
    pins = "parallelism: {tensor: 8}, revision: 6f6073b423013f6a7d4d9f39144961bfbfbc386b"
    found, whole = (
        plan(f"fleet: one\npools: {{pool: {POOL}}}\nmodels: {{model: {{source: {LLAMA}, {pins}{more}}}}}")
        for more in (", engine: {quantization: fp8}", "")
    )
    assert found.models["model"].scaling.load_s == pytest.approx(whole.models["model"].scaling.load_s, abs=2)
    claims = [each.services["model"].claim for each in (found, whole)]
    assert [each.size_gib if each else None for each in claims] == [280, 280]
    assert found.models["model"].stages[0].weights_gib < 0.6 * whole.models["model"].stages[0].weights_gib


def test_quantized_and_custom_checkpoints_are_loaded_as_they_are() -> None:
    facts = load_catalog()
    for source in ("Qwen/Qwen3-32B-AWQ", "Qwen/Qwen3-32B-FP8"):
        assert quantize_at_load(facts.model(source), {"quantization": "fp8"}) is facts.model(source)
    model = facts.model(LLAMA)
    assert quantize_at_load(model, {"quantization": "torchao"}) is model
    assert count_weights(quantize_at_load(model, {"quantization": "fp8"})).bytes < 0.6 * count_weights(model).bytes
