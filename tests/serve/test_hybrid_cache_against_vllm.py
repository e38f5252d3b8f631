"""Our layout of caches with recurrent states, two widths of heads or an indexer against vLLM's own functions."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rayhelm.facts.engines import find_engine
from rayhelm.facts.huggingface import read_config
from rayhelm.facts.model import Checkpoint, Recurrence
from rayhelm.planner.memory.gpu_memory import GIB
from rayhelm.planner.memory.kv_cache import KvCache, lay_out_kv_cache
from rayhelm.planner.memory.recurrent_state import count_state_bytes

pytestmark = pytest.mark.serve

FOLDER = Path(__file__).parents[1] / "facts/architecture_configs"
CASES = [
    ("Qwen--Qwen3.5-35B-A3B", 1),
    ("Qwen--Qwen3.5-27B", 2),
    ("Qwen--Qwen3-Next-80B-A3B-Instruct", 4),
    ("nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 2),
    ("nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8", 8),
    ("ibm-granite--granite-4.0-h-small", 4),
    ("ai21labs--AI21-Jamba-Mini-1.5", 2),
    ("tiiuae--Falcon-H1-7B-Instruct", 2),
    ("LiquidAI--LFM2-1.2B", 1),
    ("google--gemma-4-26B-A4B-it", 1),
    ("google--gemma-4-31B-it", 4),
    ("google--gemma-4-E4B-it", 1),
    ("XiaomiMiMo--MiMo-V2-Flash", 8),
    ("google--gemma-2-9b-it", 2),
    ("CohereLabs--c4ai-command-r7b-12-2024", 1),
    ("LGAI-EXAONE--EXAONE-4.0-32B", 4),
    ("allenai--Olmo-3-7B-Instruct", 2),
    ("arcee-ai--Trinity-Mini", 4),
    ("mistralai--Mixtral-8x22B-Instruct-v0.1", 8),
    ("allenai--OLMo-2-1124-13B-Instruct", 2),
    ("zai-org--GLM-4.5-Air", 8),
    ("ByteDance-Seed--Seed-OSS-36B-Instruct", 4),
    ("bigcode--starcoder2-15b", 4),
    ("bigscience--bloom-7b1", 2),
    ("tiiuae--falcon-40b-instruct", 8),
    ("openai-community--gpt2-xl", 1),
    ("ibm-granite--granite-3.1-3b-a800m-instruct", 2),
    ("databricks--dbrx-instruct", 8),
    ("swiss-ai--Apertus-8B-Instruct-2509", 2),
    ("stabilityai--stablelm-2-1_6b-chat", 4),
]
BATCH = 2048
AVAILABLE = 7 * GIB


@pytest.mark.parametrize(("name", "tp"), CASES)
@pytest.mark.parametrize("context", [1000, 100_000])
def test_cache_of_each_shape_equals_that_of_vllm(name: str, tp: int, context: int) -> None:
    from vllm.v1.core import kv_cache_utils as theirs

    model = read_config(json.loads((FOLDER / f"{name}.json").read_text()))
    ours = lay_out_kv_cache(model, tp, (model.layers,), "auto", find_engine("0.29.0")[0])
    assert ours is not None
    specs: Any = _specs(model, tp, ours)
    groups = theirs._get_kv_cache_groups_uniform_page_size(theirs.unify_kv_cache_spec_page_size(specs))
    assert ours.block_bytes(0) == theirs._pool_bytes_per_block(groups)
    config: Any = SimpleNamespace(
        model_config=SimpleNamespace(max_model_len=context),
        parallel_config=SimpleNamespace(decode_context_parallel_size=1),
        scheduler_config=SimpleNamespace(max_num_encoder_input_tokens=BATCH),
        cache_config=SimpleNamespace(mamba_cache_mode="align"),
        max_in_flight_tokens=2 * BATCH,
    )
    needed = ours.request_blocks(context, in_flight=2 * BATCH, batch=BATCH) * ours.block_bytes(0)
    assert needed == theirs._max_memory_usage_bytes_from_groups(config, groups)
    longest = ours.largest_context(AVAILABLE // ours.block_bytes(0), context, in_flight=2 * BATCH, batch=BATCH)
    assert longest == theirs._estimate_max_model_len_from_groups(config, groups, AVAILABLE)


@pytest.mark.parametrize(("name", "tp"), CASES[:9])
def test_state_of_each_recurrence_equals_that_of_vllm(name: str, tp: int) -> None:
    from vllm.v1.kv_cache_interface import MambaSpec

    model = read_config(json.loads((FOLDER / f"{name}.json").read_text()))
    assert model.recurrence is not None
    shapes, dtypes = _state(model.recurrence, tp)
    assert (
        count_state_bytes(model.recurrence, tp)
        == MambaSpec(block_size=16, shapes=shapes, dtypes=dtypes).page_size_bytes
    )


def _state(part: Recurrence, tp: int) -> Any:
    """Return vLLM's shapes and dtypes of the state of one layer."""
    import torch
    from vllm.model_executor.layers.mamba.mamba_utils import MambaStateShapeCalculator as Shapes

    inner = part.heads * part.head_dim
    recurrent = torch.float32 if part.state_bits == 32 else torch.bfloat16
    if part.kind == "convolution":
        return Shapes.short_conv_state_shape(tp, inner, part.kernel), (torch.bfloat16,)
    shapes: Any = {
        "mamba": lambda: Shapes.mamba1_state_shape(tp, inner, part.state, part.kernel),
        "mamba2": lambda: Shapes.mamba2_state_shape(
            tp, inner, part.groups, part.heads, part.head_dim, part.state, part.kernel
        ),
        "delta": lambda: Shapes.gated_delta_net_state_shape(
            tp, part.groups, part.heads, part.state, part.head_dim, part.kernel
        ),
    }[part.kind]()
    return shapes, (torch.bfloat16, recurrent)


def _specs(model: Checkpoint, tp: int, ours: KvCache) -> dict[str, object]:
    """Return vLLM's spec of every layer. The block size is ours, where a state needs more than 16 tokens."""
    import torch
    from vllm.v1.kv_cache_interface import FullAttentionSpec, MambaSpec, SlidingWindowSpec

    attention, block = model.attention, ours.block_size
    specs: dict[str, object] = {}
    for layer in range(model.layers - attention.cache_shared_layers):
        if layer in model.recurrent_layers:
            assert model.recurrence is not None
            shapes, dtypes = _state(model.recurrence, tp)
            specs[f"{layer}.state"] = MambaSpec(
                block_size=block, shapes=shapes, dtypes=dtypes, page_size_padded=ours.page_bytes,
                mamba_cache_mode="align",
            )  # fmt: skip
        if layer not in model.attention_layers:
            continue
        windowed = layer in model.windowed_layers
        own = None if windowed else attention.full
        heads, width = (own.kv_heads, own.head_dim) if own else (attention.kv_heads, attention.head_dim)
        shape = {"num_kv_heads": max(1, heads // tp), "head_size": width, "head_size_v": attention.value_dim or width}
        common: Any = {"block_size": block, "dtype": torch.bfloat16, **shape}
        specs[f"{layer}"] = (
            SlidingWindowSpec(sliding_window=attention.sliding_window, **common)
            if windowed
            else FullAttentionSpec(**common)
        )
    return specs
