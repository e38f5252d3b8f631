"""Types of the KV cache, contexts and `params.json` against vLLM's own functions."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rayhelm.facts.engines import find_engine
from rayhelm.facts.huggingface import read_config
from rayhelm.planner.memory.gpu_memory import GIB
from rayhelm.planner.memory.kv_cache import lay_out_kv_cache
from rayhelm.planner.memory.kv_cache_types import count_head_bytes

pytestmark = pytest.mark.serve

CONFIGS = Path(__file__).parents[1] / "facts/architecture_configs"
SCHEMES: list[dict[str, Any] | str | None] = [
    "FP8", "fp8", "NVFP4", "FP8_E4M3", "INT8", "NONE", None,
    {"num_bits": 8, "type": "float", "dynamic": False},
    {"num_bits": 8, "type": "float", "dynamic": True},
    {"num_bits": 8, "type": "int", "dynamic": False},
    {"num_bits": 4, "type": "float", "dynamic": "local"},
]  # fmt: skip
SMALL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512, "intermediate_size": 1024,
    "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 1000,
}  # fmt: skip


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("key", ["kv_cache_quant_algo", "kv_cache_scheme"])
@pytest.mark.parametrize("is_nested", [False, True], ids=["flat", "nested"])
def test_bits_of_a_modelopt_cache_equal_those_of_vllm(scheme: object, key: str, is_nested: bool) -> None:
    from vllm.utils.torch_utils import get_kv_cache_quant_algo_string

    inner = {"quant_algo": "FP8"} | ({key: scheme} if scheme else {})
    entry: dict[str, Any] = {"quant_method": "modelopt"} | ({"quantization": inner} if is_nested else inner)
    found = read_config(SMALL | {"max_position_embeddings": 4096, "quantization_config": entry}).quantization
    assert found is not None
    expected = {"fp8_e4m3": 8, "fp8": 8, "nvfp4": 4, "auto": None, None: None}
    assert found.kv_bits == expected[get_kv_cache_quant_algo_string(entry)]


@pytest.mark.parametrize("longest", [8192, 32768, 131072])
@pytest.mark.parametrize(
    "scaling",
    [
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
        {"type": "yarn", "factor": 2.5, "original_max_position_embeddings": 8192},
        {"rope_type": "linear", "factor": 4.0},
        {"rope_type": "dynamic", "factor": 2.0},
        {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
         "original_max_position_embeddings": 8192},
        {"rope_type": "default"},
        {"type": "longrope", "short_factor": [1.0] * 32, "long_factor": [2.0] * 32},
    ],
    ids=lambda scaling: scaling.get("rope_type") or scaling["type"],
)  # fmt: skip
def test_contexts_equal_those_of_vllm(longest: int, scaling: dict[str, Any]) -> None:
    from transformers import LlamaConfig
    from vllm.config.model import _get_and_verify_max_len
    from vllm.transformers_utils.config import patch_rope_parameters

    more = {"original_max_position_embeddings": 4096} if scaling.get("type") == "longrope" else {}
    keys = SMALL | {"max_position_embeddings": longest, "rope_scaling": scaling} | more
    config: Any = LlamaConfig(**{key: value for key, value in keys.items() if key != "architectures"})
    patch_rope_parameters(config)

    def ask(wanted: int | None) -> int:
        shape: Any = SimpleNamespace(derived_max_model_len_and_key=(longest, "max_position_embeddings"))
        return _get_and_verify_max_len(config, shape, None, wanted, False, None)

    ours = read_config(keys)
    assert ours.default_context == ask(None)
    assert ask(ours.max_context) == ours.max_context
    with pytest.raises(ValueError, match="is greater than the derived max_model_len"):
        ask(ours.max_context + 1)


@pytest.mark.parametrize(
    "dtype", ["fp8", "nvfp4", "fp8_per_token_head", "int8_per_token_head", "int4_per_token_head", "bfloat16"]
)
@pytest.mark.parametrize(("heads", "width"), [(8, 128), (1, 256), (4, 64)])
def test_bytes_of_a_page_equal_those_of_vllm(dtype: str, heads: int, width: int) -> None:
    import torch
    from vllm.v1.attention.backends.triton_attn import TritonAttentionBackend
    from vllm.v1.kv_cache_interface import FullAttentionSpec, get_kv_quant_mode

    stored = torch.bfloat16 if dtype == "bfloat16" else torch.uint8
    spec = FullAttentionSpec(
        block_size=16, num_kv_heads=heads, head_size=width, dtype=stored, kv_quant_mode=get_kv_quant_mode(dtype)
    )
    if dtype == "nvfp4":  # its backend needs a GPU to import
        from vllm.utils.torch_utils import nvfp4_kv_cache_full_dim

        assert count_head_bytes(dtype, width, width) == 2 * nvfp4_kv_cache_full_dim(width)
        return
    expected = TritonAttentionBackend.customize_spec(spec).page_size_bytes
    assert 16 * heads * count_head_bytes(dtype, width, width) == expected


@pytest.mark.parametrize(
    "name",
    [
        "google--gemma-3-1b-it", "google--gemma-2-9b-it", "google--gemma-4-26B-A4B-it", "google--gemma-4-31B-it",
        "XiaomiMiMo--MiMo-V2-Flash", "openai--gpt-oss-120b", "CohereLabs--c4ai-command-r7b-12-2024",
        "LGAI-EXAONE--EXAONE-4.0-32B", "allenai--Olmo-3-7B-Instruct", "arcee-ai--Trinity-Mini",
        "mistralai--Mistral-7B-Instruct-v0.1", "mistralai--Ministral-8B-Instruct-2410",
    ],
)  # fmt: skip
def test_cache_without_the_hybrid_manager_equals_that_of_vllm(name: str) -> None:
    import torch
    from vllm.v1.core import kv_cache_utils as theirs
    from vllm.v1.kv_cache_interface import FullAttentionSpec, SlidingWindowSpec

    context, batch = 50_000, 2048
    model = read_config(json.loads((CONFIGS / f"{name}.json").read_text()))
    engine = find_engine("0.29.0")[0].model_copy(update={"hybrid_cache": False})
    ours, attention = lay_out_kv_cache(model, 1, (model.layers,), "auto", engine), model.attention
    assert ours is not None
    specs: Any = {}
    for layer in model.attention_layers[: model.layers - attention.cache_shared_layers]:
        own = None if layer in model.windowed_layers else attention.full
        heads, width = (own.kv_heads, own.head_dim) if own else (attention.kv_heads, attention.head_dim)
        common: Any = {
            "block_size": 16, "num_kv_heads": heads, "head_size": width,
            "head_size_v": attention.value_dim or width, "dtype": torch.bfloat16,
        }  # fmt: skip
        specs[str(layer)] = (
            SlidingWindowSpec(sliding_window=attention.sliding_window, **common)
            if layer in model.windowed_layers
            else FullAttentionSpec(**common)
        )
    config: Any = SimpleNamespace(
        scheduler_config=SimpleNamespace(
            disable_hybrid_kv_cache_manager=True, max_num_encoder_input_tokens=batch
        ),
        model_config=SimpleNamespace(max_model_len=context),
        parallel_config=SimpleNamespace(decode_context_parallel_size=1),
        cache_config=SimpleNamespace(mamba_cache_mode="align"),
        max_in_flight_tokens=2 * batch,
        speculative_config=None,
    )  # fmt: skip
    groups = theirs.get_kv_cache_groups(config, specs)
    tokens = [
        int(20 * GIB // each * context)
        for each in (
            ours.request_blocks(context, in_flight=2 * batch, batch=batch) * ours.block_bytes(0),
            theirs._max_memory_usage_bytes_from_groups(config, groups),
        )
    ]
    assert tokens[0] == pytest.approx(tokens[1], rel=0.01)


PARAMS = {
    "dim": 4096, "n_layers": 8, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8,
    "norm_eps": 1e-05, "vocab_size": 32768, "rope_theta": 1e6,
}  # fmt: skip


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"sliding_window": [32768, None, None, None]},
        {"yarn": {"factor": 16, "original_max_position_embeddings": 16384, "beta": 32, "alpha": 1}},
        {"moe": {"num_experts": 8, "num_experts_per_tok": 2}},
        {"tied_embeddings": True, "max_position_embeddings": 32768},
    ],
    ids=["plain", "windows", "yarn", "experts", "tied"],
)
def test_params_of_mistral_are_converted_as_by_vllm(more: dict[str, Any], tmp_path: Path) -> None:
    from vllm.transformers_utils.configs.mistral import adapt_config_dict

    (tmp_path / "params.json").write_text(json.dumps(PARAMS | more))
    ours = read_config(tmp_path)
    theirs: Any = adapt_config_dict(json.loads(json.dumps(PARAMS | more)), {})
    assert [ours.architecture] == theirs.architectures
    assert ours.tied_embeddings == theirs.tie_word_embeddings
    kinds = getattr(theirs, "layer_types", None) or []
    assert ours.attention.windowed_layers == kinds.count("sliding_attention")
    assert (ours.layers, ours.hidden) == (theirs.num_hidden_layers, theirs.hidden_size)
