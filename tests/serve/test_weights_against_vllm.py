"""Our weights and cache of a rank against the model that vLLM's own classes build on the meta device."""

import json
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
CONTEXT = 4096


@pytest.mark.parametrize(("name", "tp"), [("Qwen--Qwen3-8B", 1), ("ByteDance-Seed--Seed-OSS-36B-Instruct", 4)])
def test_weights_and_cache_of_a_rank_equal_those_of_the_classes_of_vllm(name: str, tp: int) -> None:
    keys = json.loads((FOLDER / f"{name}.json").read_text())
    model, engine = read_config(keys), find_engine("0.29.0")[0]
    built = build(keys, tp, min(CONTEXT, model.max_context), engine.block_size)
    counted = count_stage_weights(model, ReplicaShape(tp), engine)[0] + count_rotary_table(model)
    assert counted == pytest.approx(built.weights, rel=0.001)
    cache = lay_out_kv_cache(model, tp, (model.layers,), "auto", engine)
    assert cache is not None
    assert cache.block_bytes(0) == built.block
    blocks = cache.request_blocks(min(CONTEXT, model.max_context), in_flight=2 * BATCH, batch=BATCH)
    assert blocks * cache.block_bytes(0) == built.needed
