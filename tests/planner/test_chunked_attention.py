"""Chunked attention of Llama 4: the cache holds all tokens, and three of four layers read one chunk."""

import json
from pathlib import Path

import pytest

from rayhelm.facts.huggingface import read_config
from shared.fleets import plan

CONFIG = Path(__file__).parents[1] / "facts/architecture_configs/meta-llama--Llama-4-Scout-17B-16E-Instruct.json"


def test_layers_with_chunks_are_read_without_keys_and_from_lists() -> None:
    keys = json.loads(CONFIG.read_text())
    found = read_config(keys).attention
    assert (found.chunk, found.chunked_layers, found.windowed_layers, found.local_tokens) == (8192, 36, 0, 8192)
    text = keys["text_config"] | {"no_rope_layers": [1, 0] * 24, "attention_chunk_size": 4096}
    found = read_config(keys | {"text_config": text}).attention
    assert (found.chunk, found.chunked_layers) == (4096, 24)


def test_long_prompts_need_about_half_of_the_gpus_of_full_attention(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scout.json").write_text(CONFIG.read_text())
    found = plan("""
        fleet: long
        pools: {gpu: {gpu: H200-SXM-141GB, nodes: 4, gpusPerNode: 8}}
        models:
          scout:
            source: meta-llama/Llama-4-Scout-17B-16E-Instruct
            architecture: ./scout.json
            unpinnedReason: an example
            context: 1000000
            traffic: {requestsPerSecond: 0.05, inputTokens: 600000, outputTokens: 1000}
            slo: {ttft: 180s, tpot: 80ms}
    """).models["scout"]
    assert 8 <= found.gpus <= 16
