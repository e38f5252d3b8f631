"""Our weights and cache of a rank against the model that vLLM's own classes build on the meta device.

`RAYHELM_ALL_SHAPES=1`, which `make verify-memory` sets, compares all of them. Shapes with windows, recurrent layers or
latent attention have other blocks in the CPU build: `test_hybrid_cache_against_vllm` has those.
"""

import json
import os
from pathlib import Path

import pytest

from rayhelm.facts.engines import find_engine
from rayhelm.facts.huggingface import read_config
from rayhelm.planner.memory.gpu_memory import count_rotary_table, count_stage_weights
from rayhelm.planner.memory.kv_cache import lay_out_kv_cache
from rayhelm.planner.shape import ReplicaShape
from rayhelm.run.local.engine_classes import BATCH, build

pytestmark = pytest.mark.serve

FOLDER = Path(__file__).parents[1] / "facts/architecture_configs"
CONTEXT = 32768
USUAL = [
    ("Qwen--Qwen3-8B", 1),
    ("ByteDance-Seed--Seed-OSS-36B-Instruct", 4),
    ("meta-llama--Llama-3.3-70B-Instruct", 8),
    ("Qwen--Qwen3-235B-A22B", 8),
    ("zai-org--GLM-4.5-Air", 2),
    ("mistralai--Mixtral-8x22B-Instruct-v0.1", 8),
    ("baidu--ERNIE-4.5-21B-A3B-PT", 1),
    ("CohereLabs--c4ai-command-r-plus", 8),
    ("LiquidAI--LFM2-8B-A1B", 1),
    ("allenai--OLMoE-1B-7B-0924-Instruct", 2),
    ("google--paligemma-3b-mix-224", 1),
    ("Qwen--Qwen2-Audio-7B-Instruct", 1),
    ("openai--whisper-small", 1),
    ("tiiuae--falcon-40b-instruct", 2),
    ("tomaarsen--Qwen3-Reranker-4B-seq-cls", 1),
]
OTHERS = [
    ("CohereLabs--c4ai-command-r-v01", 1),
    ("EleutherAI--gpt-j-6b", 1),
    ("EleutherAI--gpt-j-6b", 8),
    ("EleutherAI--gpt-neox-20b", 1),
    ("EleutherAI--gpt-neox-20b", 8),
    ("HuggingFaceTB--SmolVLM-Instruct", 1),
    ("Qwen--Qwen1.5-MoE-A2.7B-Chat", 1),
    ("Qwen--Qwen1.5-MoE-A2.7B-Chat", 8),
    ("Qwen--Qwen2-1.5B-Instruct", 1),
    ("Qwen--Qwen2-57B-A14B-Instruct", 2),
    ("Qwen--Qwen2.5-32B-Instruct", 1),
    ("Qwen--Qwen2.5-32B-Instruct", 8),
    ("Qwen--Qwen3-235B-A22B", 1),
    ("Qwen--Qwen3-8B", 8),
    ("Qwen--Qwen3-Coder-480B-A35B-Instruct", 8),
    ("Skywork--Skywork-Reward-Llama-3.1-8B-v0.2", 1),
    ("allenai--OLMo-2-1124-13B-Instruct", 1),
    ("allenai--OLMo-2-1124-13B-Instruct", 2),
    ("allenai--OLMo-7B-hf", 1),
    ("allenai--OLMo-7B-hf", 8),
    ("arcee-ai--AFM-4.5B", 1),
    ("baidu--ERNIE-4.5-0.3B-PT", 1),
    ("distil-whisper--distil-large-v3", 1),
    ("facebook--opt-6.7b", 1),
    ("facebook--opt-6.7b", 8),
    ("google--gemma-7b-it", 1),
    ("google--gemma-7b-it", 8),
    ("ibm-granite--granite-3.1-3b-a800m-instruct", 1),
    ("ibm-granite--granite-3.1-3b-a800m-instruct", 2),
    ("ibm-granite--granite-3.3-8b-instruct", 1),
    ("ibm-granite--granite-3.3-8b-instruct", 8),
    ("meta-llama--Llama-2-70b-chat-hf", 8),
    ("meta-llama--Llama-2-7b-chat-hf", 1),
    ("meta-llama--Meta-Llama-3-8B-Instruct", 1),
    ("meta-llama--Meta-Llama-3-8B-Instruct", 2),
    ("microsoft--phi-2", 1),
    ("microsoft--phi-2", 8),
    ("nvidia--Nemotron-Mini-4B-Instruct", 1),
    ("nvidia--Nemotron-Mini-4B-Instruct", 8),
    ("openai-community--gpt2-xl", 1),
    ("stabilityai--stablelm-2-1_6b-chat", 1),
    ("tiiuae--falcon-7b-instruct", 1),
    ("zai-org--GLM-4-32B-0414", 2),
    ("zai-org--GLM-4.5", 2),
    ("zai-org--glm-4-9b-chat-hf", 1),
]
SHAPES = [*USUAL, *OTHERS] if os.environ.get("RAYHELM_ALL_SHAPES") else USUAL


@pytest.mark.parametrize(("name", "tp"), SHAPES)
def test_weights_and_cache_of_a_rank_equal_those_of_the_classes_of_vllm(name: str, tp: int) -> None:
    keys = json.loads((FOLDER / f"{name}.json").read_text())
    model, engine = read_config(keys), find_engine("0.29.0")[0]
    context = min(CONTEXT, model.max_context)
    built = build(keys, tp, context, engine.block_size)
    counted = count_stage_weights(model, ReplicaShape(tp), engine)[0] + count_rotary_table(model)
    assert counted == pytest.approx(built.weights, rel=0.001)
    cache = lay_out_kv_cache(model, tp, (model.layers,), "auto", engine)
    assert cache is not None
    assert cache.block_bytes(0) == built.block
    needed = cache.request_blocks(context, in_flight=2 * BATCH, batch=BATCH) * cache.block_bytes(0)
    assert needed == pytest.approx(built.needed, rel=0.01)
