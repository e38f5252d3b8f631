"""Weights counted from the architecture alone meet what publishers state and what vLLM measured."""

import pytest

from rayhelm.facts import load_catalog
from rayhelm.facts.model import Checkpoint, Quantization
from rayhelm.facts.tensors import ModelWeights, Tensor, count_weights

GIB = 2**30


def of(name: str) -> ModelWeights:
    return count_weights(load_catalog().model(name))


def tensor(name: str, part: tuple[Tensor, ...]) -> Tensor:
    return next(tensor for tensor in part if tensor.name == name)


@pytest.mark.parametrize("model", load_catalog().models(), ids=lambda model: model.id)
def test_computed_parameters_match_the_published_count(model: Checkpoint) -> None:
    assert model.published is not None
    assert count_weights(model).parameters == pytest.approx(model.published.parameters, rel=0.005)


@pytest.mark.parametrize(
    ("name", "gib"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", 14.99),
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", 67.72),
        ("Qwen/Qwen3-32B", 2 * 30.59),
    ],
)
def test_bytes_meet_what_vllm_logs_after_loading(name: str, gib: float) -> None:
    assert of(name).bytes / GIB == pytest.approx(gib, rel=0.005)


def test_awq_bytes_are_those_of_the_checkpoint_to_the_byte() -> None:
    """19,325,298,688: the sum over the 1,603 tensor headers of Qwen/Qwen3-32B-AWQ."""
    assert of("Qwen/Qwen3-32B-AWQ").bytes == 19_325_298_688


def test_awq_of_a_70b_meets_the_size_of_its_shards() -> None:
    assert of("hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4").bytes / 1e9 == pytest.approx(39.77, abs=0.01)


def test_metas_fp8_keeps_attention_and_the_outer_layers_in_bfloat16() -> None:
    outer, inner = of("Llama-3.1-405B-FP8").layers[0], of("Llama-3.1-405B-FP8").layers[1]
    assert tensor("mlp.down", outer).bytes == 2 * tensor("mlp.down", outer).parameters
    assert tensor("mlp.down", inner).bytes == pytest.approx(tensor("mlp.down", inner).parameters, rel=0.001)
    assert tensor("attention.q", inner).bytes == 2 * tensor("attention.q", inner).parameters
    assert of("Llama-3.1-405B-FP8").layers[125] is outer


def test_block_scales_cost_four_bytes_for_every_128_by_128_weights() -> None:
    plain, scaled = of("Qwen/Qwen3-32B").layers[0], of("Qwen/Qwen3-32B-FP8").layers[0]
    weight = tensor("mlp.down", plain).parameters
    assert tensor("mlp.down", scaled).bytes == weight + 4 * weight / 128**2


def test_mxfp4_quantizes_experts_only() -> None:
    layer = of("openai/gpt-oss-20b").layers[0]
    up = tensor("experts.gate_up", layer)
    biases = 32 * 2 * 2880
    assert up.bytes == (up.parameters - biases) * 4.25 / 8 + biases * 2
    assert tensor("experts.router", layer).bytes == 2 * tensor("experts.router", layer).parameters
    assert tensor("attention.o", layer).bytes == 2 * tensor("attention.o", layer).parameters


def test_bitsandbytes_puts_64_weights_under_one_scale() -> None:
    nf4 = Quantization(method="bitsandbytes", bits=4, group_size=64, scale_bits=32)
    layer = count_weights(load_catalog().model("microsoft/phi-4").model_copy(update={"quantization": nf4})).layers[0]
    assert tensor("mlp.down", layer).bytes == tensor("mlp.down", layer).parameters * (0.5 + 4 / 64)


def test_equal_layers_are_one_object() -> None:
    assert len({id(layer) for layer in of("Llama-3.1-405B").layers}) == 1
    deepseek = of("deepseek-ai/DeepSeek-V3").layers
    assert [len({id(layer) for layer in part}) for part in (deepseek[:3], deepseek[3:], deepseek)] == [1, 1, 2]


def test_weights_of_a_model_are_cached() -> None:
    assert of("Qwen/Qwen3-14B") is of("Qwen3-14B")


def test_tied_head_has_bytes_for_the_last_stage_but_no_parameters() -> None:
    tied = of("meta-llama/Llama-3.2-1B-Instruct")
    head = tensor("final.head", tied.final)
    assert (head.parameters, head.bytes) == (0, tensor("embedding.tokens", tied.embedding).bytes)
    assert tied.bytes == 2 * tied.parameters


def test_each_weight_has_its_tensor_parallel_sharding() -> None:
    llama, deepseek = of("Llama-3.1-8B"), of("deepseek-ai/DeepSeek-V3").layers[3]
    assert {t.name: t.shard for t in llama.layers[0]} == {
        "attention.q": "split",
        "attention.k": "kv",
        "attention.v": "kv",
        "attention.o": "split",
        "mlp.gate_up": "split",
        "mlp.down": "split",
        "norms": "replicated",
    }
    assert tensor("final.head", llama.final).shard == "vocab"
    assert tensor("attention.q_down", deepseek).shard == "replicated"
    assert tensor("attention.kv_down", deepseek).shard == "replicated"
    assert tensor("attention.kv_up", deepseek).shard == "split"
    assert tensor("experts.router", deepseek).shard == "replicated"


def test_float32_checkpoints_are_16_bits_in_vllm_only() -> None:
    assert of("BAAI/bge-large-en-v1.5").bytes == 2 * of("BAAI/bge-large-en-v1.5").parameters
    assert of("microsoft/speecht5_tts").bytes == 4 * of("microsoft/speecht5_tts").parameters


def test_speech_and_transcription_fit_one_8_gb_gpu() -> None:
    together = of("microsoft/speecht5_tts").bytes + of("openai/whisper-large-v3").bytes
    usable = load_catalog().gpu("RTX-2070-8GB").usable_gib
    assert usable is not None
    assert of("microsoft/speecht5_tts").bytes < usable / 2 * GIB
    assert together < usable * GIB
