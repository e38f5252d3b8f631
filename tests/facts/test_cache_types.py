"""The KV cache of quantized checkpoints has the bytes that vLLM 0.29 gives it."""

from typing import Any

import pytest

from rayhelm.errors import FleetError
from rayhelm.facts.engines import find_engine
from rayhelm.facts.huggingface import read_config
from rayhelm.planner.memory.kv_cache import lay_out_kv_cache

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
}  # fmt: skip
LATENT = {
    "architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 8,
    "num_attention_heads": 16, "vocab_size": 32000, "max_position_embeddings": 32768, "q_lora_rank": 512,
    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 8,
    "n_shared_experts": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 512, "first_k_dense_replace": 1,
}  # fmt: skip
STATIC = {"num_bits": 8, "type": "float", "dynamic": False}
WEIGHTS = {"config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}}}


def page_of(keys: dict[str, Any], dtype: str = "auto") -> int:
    """Return the bytes of one layer's part of a block."""
    model = read_config(keys)
    cache = lay_out_kv_cache(model, 1, (model.layers,), dtype, find_engine("0.29.0")[0])
    assert cache is not None
    return cache.page_bytes


@pytest.mark.parametrize(
    ("quantization", "page"),
    [
        ({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}, 32768),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "fp8"}, 32768),
        ({"quant_algo": "NVFP4", "kv_cache_quant_algo": "NVFP4"}, 18432),
        ({"quant_method": "modelopt", "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}, 32768),
        ({"quant_method": "modelopt_fp4", "quant_algo": "NVFP4", "kv_cache_scheme": STATIC}, 32768),
        ({"quant_algo": "FP8", "kv_cache_scheme": {"num_bits": 4, "type": "float", "dynamic": "local"}}, 18432),
        ({"quant_algo": "FP8", "kv_cache_scheme": STATIC | {"dynamic": True}}, 65536),
        ({"quant_algo": "FP8", "kv_cache_quant_algo": "FP8_E4M3"}, 65536),
        ({"quant_algo": "FP8", "kv_cache_quant_algo": "INT8"}, 65536),
        ({"quant_algo": "FP8", "kv_cache_quant_algo": "NONE"}, 65536),
        ({"quant_method": "fp8", "kv_cache_scheme": STATIC}, 65536),
        ({"quant_method": "fp8", "kv_cache_scheme": "static"}, 65536),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": STATIC} | WEIGHTS, 32768),
        ({"quant_method": "compressed_tensors", "kv_cache_scheme": None} | WEIGHTS, 65536),
    ],
)
def test_cache_has_the_bits_that_vllm_takes_from_the_checkpoint(quantization: dict[str, Any], page: int) -> None:
    assert page_of(LLAMA | {"quantization_config": quantization}) == page
    assert page_of(LLAMA | {"quantization_config": quantization}, "bfloat16") == 65536


@pytest.mark.parametrize(
    ("dtype", "heads", "latent"),
    [
        ("auto", 65536, 1152),
        ("fp8_e5m2", 32768, 576),
        ("nvfp4", 18432, 576),
        ("fp8_per_token_head", 33792, 584),
        ("int8_per_token_head", 33792, 584),
        ("int4_per_token_head", 17408, 296),
    ],
)
def test_page_of_each_cache_type_is_that_of_vllm(dtype: str, heads: int, latent: int) -> None:
    assert page_of(LLAMA, dtype) == heads
    assert page_of(LATENT, dtype) == 64 * latent


def test_scheme_of_compressed_tensors_is_not_used_for_a_latent_cache() -> None:
    entry = {"quant_method": "compressed-tensors", "kv_cache_scheme": STATIC} | WEIGHTS
    assert page_of(LATENT | {"quantization_config": entry}) == page_of(LATENT)
    entry = {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}
    assert page_of(LATENT | {"quantization_config": entry}) == page_of(LATENT) // 2


@pytest.mark.parametrize(
    ("scheme", "message"),
    [
        ({"num_bits": 4}, "kv_cache_scheme.num_bits: is 4: vLLM reads caches of 8 bits"),
        ({"num_bits": "8"}, "kv_cache_scheme.num_bits: is '8', not a whole number"),
        (8, "kv_cache_scheme: is 8, not an object"),
    ],
)
def test_cache_scheme_that_vllm_refuses_is_refused(scheme: object, message: str) -> None:
    entry = {"quant_method": "compressed-tensors", "kv_cache_scheme": scheme} | WEIGHTS
    with pytest.raises(FleetError) as error:
        read_config(LLAMA | {"quantization_config": entry})
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("longest", "scaling", "expected"),
    [
        (32768, {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}, 131072),
        (131072, {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}, 131072),
        (40960, {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}, 131072),
        (32768, {"type": "yarn", "factor": 4.0}, 131072),
        (8192, {"rope_type": "linear", "factor": 4.0}, 32768),
        (8192, {"type": "dynamic", "factor": 2}, 16384),
        (8192, {"type": "linear", "factor": None}, 8192),
        (131072, {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}, 131072),
        (131072, {"rope_type": "default", "rope_theta": 1e6}, 131072),
    ],
)
@pytest.mark.parametrize("key", ["rope_scaling", "rope_parameters"])
def test_longest_context_follows_the_scaling_of_positions(
    key: str, longest: int, scaling: dict[str, Any], expected: int
) -> None:
    model = read_config(LLAMA | {"max_position_embeddings": longest, key: scaling})
    assert (model.max_context, model.default_context) == (expected, expected)


def test_scaling_of_each_kind_of_layer_is_read() -> None:
    kinds = {"full_attention": {"rope_type": "linear", "factor": 2.0}, "sliding_attention": {"rope_type": "default"}}
    assert read_config(LLAMA | {"rope_parameters": kinds}).max_context == 262144


def test_long_rope_has_a_shorter_default_context() -> None:
    keys = LLAMA | {
        "original_max_position_embeddings": 4096,
        "rope_scaling": {"type": "longrope", "long_factor": [2.0]},
    }
    model = read_config(keys)
    assert (model.max_context, model.default_context) == (131072, 4096)
