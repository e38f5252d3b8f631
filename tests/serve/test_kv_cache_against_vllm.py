"""Our layout of the KV cache against vLLM's own functions: blocks, bytes, tokens and the longest context."""

from types import SimpleNamespace

import pytest

from rayhelm.facts import load_catalog
from rayhelm.facts.engines import find_engine
from rayhelm.facts.model import Checkpoint
from rayhelm.planner.memory.gpu_memory import GIB
from rayhelm.planner.memory.kv_cache import lay_out_kv_cache
from rayhelm.planner.memory.parallelism import split_layers

pytestmark = pytest.mark.serve

CASES = [
    ("meta-llama/Llama-3.1-8B-Instruct", 1, 1, 32768),
    ("meta-llama/Llama-3.1-70B-Instruct", 4, 1, 131072),
    ("meta-llama/Llama-3.1-405B-Instruct", 8, 4, 16384),
    ("Qwen/Qwen3-32B-AWQ", 1, 2, 16384),
    ("Qwen/Qwen3-30B-A3B", 8, 1, 5000),
    ("google/gemma-3-27b-it", 1, 1, 32768),
    ("google/gemma-3-4b-it", 2, 1, 1000),
    ("openai/gpt-oss-20b", 1, 1, 131072),
    ("openai/gpt-oss-120b", 2, 3, 40000),
    ("deepseek-ai/DeepSeek-V3", 8, 1, 65536),
    ("openai/whisper-large-v3", 1, 1, 448),
]
BATCH = 2048
AVAILABLE = 5 * GIB


@pytest.mark.parametrize(("name", "tp", "pp", "context"), CASES)
def test_cache_size_equals_that_of_vllm(name: str, tp: int, pp: int, context: int) -> None:
    from vllm.v1.core import kv_cache_utils as theirs

    model, constants = load_catalog().model(name), find_engine("0.29.0")[0]
    partition = split_layers(model.layers, pp)
    ours = lay_out_kv_cache(model, tp, partition, "auto", constants)
    assert ours is not None
    in_flight = BATCH * (pp + 1)
    config = _config(context, in_flight)
    stages = _specs(model, tp, partition, constants.latent_block_size)
    groups = theirs._get_kv_cache_groups_uniform_page_size({k: v for stage in stages for k, v in stage.items()})
    for stage, specs in enumerate(stages):
        projected = theirs._project_kv_cache_groups_to_worker(groups, specs)
        assert ours.block_bytes(stage) == theirs._pool_bytes_per_block(projected)
        needed = ours.request_blocks(context, in_flight=in_flight, batch=BATCH) * ours.block_bytes(stage)
        assert needed == theirs._max_memory_usage_bytes_from_groups(config, projected)
        blocks = AVAILABLE // ours.block_bytes(stage)
        longest = ours.largest_context(blocks, context, in_flight=in_flight, batch=BATCH)
        assert longest == theirs._estimate_max_model_len_from_groups(config, projected, AVAILABLE)


@pytest.mark.parametrize("layers", [9, 61, 62, 64, 80, 126])
@pytest.mark.parametrize("stages", [1, 2, 3, 4, 5, 8])
def test_layer_split_equals_that_of_vllm(layers: int, stages: int) -> None:
    from vllm.distributed.utils import get_pp_indices

    bounds = [get_pp_indices(layers, rank, stages) for rank in range(stages)]
    assert split_layers(layers, stages) == tuple(end - start for start, end in bounds)


def _config(context: int, in_flight: int) -> SimpleNamespace:
    return SimpleNamespace(
        model_config=SimpleNamespace(max_model_len=context),
        parallel_config=SimpleNamespace(decode_context_parallel_size=1),
        scheduler_config=SimpleNamespace(max_num_encoder_input_tokens=BATCH),
        max_in_flight_tokens=in_flight,
    )


def _specs(model: Checkpoint, tp: int, partition: tuple[int, ...], latent_block: int) -> list[dict[str, object]]:
    """vLLM's spec of every layer, by stage; which layers are windowed is taken over from ours."""
    import torch
    from vllm.v1.kv_cache_interface import CrossAttentionSpec, FullAttentionSpec, MLAAttentionSpec, SlidingWindowSpec

    attention = model.attention
    heads = {"num_kv_heads": max(1, attention.kv_heads // tp), "head_size": attention.head_dim, "dtype": torch.bfloat16}
    full = model.layers - attention.windowed_layers
    stages: list[dict[str, object]] = []
    layer = 0
    for count in partition:
        specs: dict[str, object] = {}
        for _ in range(count):
            if attention.mla:
                size = attention.mla.kv_lora_rank + attention.mla.qk_rope_head_dim
                spec = MLAAttentionSpec(block_size=latent_block, num_kv_heads=1, head_size=size, dtype=torch.bfloat16)
            elif (layer + 1) * full // model.layers > layer * full // model.layers:
                spec = FullAttentionSpec(block_size=16, **heads)
            else:
                spec = SlidingWindowSpec(block_size=16, sliding_window=attention.sliding_window, **heads)
            specs[f"layer.{layer}"] = spec
            if model.encoder and model.encoder.cross_attention:
                specs[f"layer.{layer}.cross"] = CrossAttentionSpec(block_size=16, **heads)
            layer += 1
        stages.append(specs)
    return stages
