"""Each file of architecture_configs is read, and its parameters are those of the class in transformers or of the
publisher. The files hold the keys of published config.json files that decide the shape of a model."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rayhelm.errors import FleetError, Problem
from rayhelm.facts import load_catalog
from rayhelm.facts._architecture import find_architecture, list_architectures
from rayhelm.facts.engines import find_engine
from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.huggingface import read_config
from rayhelm.facts.tensors import count_weights
from rayhelm.planner.memory.gpu_memory import GIB
from rayhelm.planner.memory.kv_cache import KvCache, lay_out_kv_cache
from shared.fits import fit

FOLDER = Path(__file__).parent / "architecture_configs"
REFERENCES: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "parameters.yaml").read_text())
NOT_READ = (
    "DeepseekV4ForCausalLM", "KimiK3ForConditionalGeneration", "MiniMaxM3SparseForConditionalGeneration",
    "Step3p7ForConditionalGeneration", "Zamba2ForCausalLM", "Gemma3nForConditionalGeneration", "Phi4MMForCausalLM",
    "MiniCPMV", "MolmoForCausalLM", "DeepseekOCRForCausalLM", "Qwen3OmniMoeForConditionalGeneration",
    "LongcatFlashForCausalLM", "HYV3ForCausalLM", "Ovis2_5",
)  # fmt: skip
"""Classes that vLLM 0.29 serves and rayhelm does not read."""


def keys_of(name: str) -> dict[str, Any]:
    path = next(path for path in FOLDER.glob("*.json") if path.stem.endswith(name))
    keys: dict[str, Any] = json.loads(path.read_text())
    return keys


def cache_of(name: str, tp: int = 1, dtype: str = "auto") -> KvCache:
    model = read_config(keys_of(name))
    cache = lay_out_kv_cache(model, tp, (model.layers,), dtype, find_engine("0.29.0")[0])
    assert cache is not None
    return cache


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_parameters_are_those_of_the_reference(name: str) -> None:
    found = count_weights(read_config(FOLDER / f"{name.replace('/', '--')}.json")).parameters
    within = 0.001 if REFERENCES[name]["source"] == "transformers" else 0.03
    assert found == pytest.approx(REFERENCES[name]["parameters"], rel=within)


def test_reference_exists_for_each_config() -> None:
    assert {path.stem.replace("--", "/") for path in FOLDER.glob("*.json")} == set(REFERENCES)


@pytest.mark.parametrize("name", NOT_READ)
def test_unknown_class_is_refused_with_how_to_give_its_memory(name: str) -> None:
    assert find_architecture(name) is None
    with pytest.raises(FleetError, match="`memory` give its figures"):
        read_config({"architectures": [name]})


def test_most_popular_models_are_read() -> None:
    """Of the models with a file here and the classes that are not read, at least 85 of 100."""
    assert len(REFERENCES) / (len(REFERENCES) + len(NOT_READ)) >= 0.85


def test_class_is_listed_once() -> None:
    assert len(list_architectures()) == len(set(list_architectures())) > 100


@pytest.mark.parametrize(
    ("name", "output", "task"),
    [
        ("LlamaForSequenceClassification", "score", "rerank"),
        ("Qwen2ForRewardModel", "score", "rerank"),
        ("Qwen3ForSequenceClassification", "score", "rerank"),
        ("MistralModel", "none", "embed"),
    ],
)
def test_decoder_is_read_as_classifier_or_embedding_model(name: str, output: str, task: str) -> None:
    model = read_config(keys_of("Meta-Llama-3-8B-Instruct") | {"architectures": [name]})
    assert (model.output, model.tasks) == (output, (task,))


def test_layers_of_a_puzzle_model_have_their_own_widths() -> None:
    block = {"attention": {"n_heads_in_group": 4, "no_op": False}, "ffn": {"ffn_mult": 1.0}}
    bare = {"attention": {"n_heads_in_group": None, "no_op": True}, "ffn": {"ffn_mult": 0.5}}
    keys = keys_of("Meta-Llama-3-8B-Instruct") | {"architectures": ["DeciLMForCausalLM"], "num_hidden_layers": 3}
    del keys["intermediate_size"]
    model = read_config(keys | {"block_configs": [block, bare, block]})
    assert model.mlp_widths == (2816, 1536, 2816)
    assert model.attention_layers == (0, 2)
    assert model.attention.kv_heads == 8
    with pytest.raises(FleetError, match="block_configs: has 1 entries for 3 layers"):
        read_config(keys | {"block_configs": [block]})


def test_recurrent_state_enlarges_the_blocks_of_attention() -> None:
    """Qwen3.5-35B-A3B: a state of 2 MiB in 32 bits and a convolution, beside 2 KV heads of 256."""
    cache = cache_of("Qwen3.5-35B-A3B")
    state = 32 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 32 * 128) * 2
    assert cache.page_bytes >= state
    assert cache.block_size == -(-state // (16 * 2048)) * 16
    assert cache.page_bytes == cache.block_size * 2048
    assert [len(group.layers) for group in cache.groups] == [1] * 4
    assert cache.request_blocks(1, in_flight=0, batch=0) == 1 + 3 * 2


@pytest.mark.parametrize(
    ("case", "name", "change", "tp", "dtype", "version", "gib", "context", "logged"),
    [
        ("41", "Qwen3.5-35B-A3B", {}, 1, "fp8", "0.24.0", 5.98, 131_072, 4.33),
        ("56", "Qwen3.5-27B", {}, 2, "fp8", "0.25.0", 4.99, 131_072, 2.31),
        ("73", "Qwen3.5-35B-A3B", {"linear_num_value_heads": 64, "num_attention_heads": 32, "num_hidden_layers": 48,
                                   "layer_types": None}, 1, "fp8", "0.25.0", 21.43, 131_072, 11.79),
        ("71", "Qwen3.5-27B", {"linear_num_value_heads": 32, "num_attention_heads": 16, "num_hidden_layers": 32,
                               "layer_types": None}, 1, "auto", "0.17.0", 10.78, 65_536, 342_528 / 65_536),
    ],
)  # fmt: skip
def test_logged_concurrency_of_hybrid_models_follows_from_the_gib(
    case: str, name: str, change: dict[str, Any], tp: int, dtype: str, version: str, gib: float, context: int,
    logged: float,
) -> None:  # fmt: skip
    """Start-up logs of vLLM on RTX 5090, RTX 3090 and Jetson Thor. The published logs round to 0.01 GiB."""
    keys = keys_of(name)
    model = read_config(keys | {"text_config": keys["text_config"] | change})
    cache = lay_out_kv_cache(model, tp, (model.layers,), dtype, find_engine(version)[0])
    assert cache is not None, case
    blocks = int(gib * GIB // cache.block_bytes(0))
    found = blocks / cache.request_blocks(context, in_flight=0, batch=2048)
    assert found == pytest.approx(logged, rel=0.003), case


def test_state_alone_is_the_whole_cache_of_mamba() -> None:
    cache = cache_of("Mamba-Codestral-7B-v0.1")
    assert cache.request_blocks(100_000, in_flight=0, batch=0) == 1
    assert cache.token_bytes(0) == 0


def test_tensor_parallelism_divides_the_recurrent_state() -> None:
    assert cache_of("Mamba-Codestral-7B-v0.1", tp=8).page_bytes * 8 == cache_of("Mamba-Codestral-7B-v0.1").page_bytes


def test_layers_that_share_a_cache_have_none_of_their_own() -> None:
    groups = cache_of("gemma-4-E4B-it").groups
    assert sum(group.layers[0] for group in groups) == 42 - 18


def test_indexer_of_sparse_attention_caches_its_keys() -> None:
    dense, sparse = cache_of("Kimi-K2-Instruct"), cache_of("DeepSeek-V3.2")
    assert sparse.block_bytes(0) - dense.block_bytes(0) == 61 * 64 * 132


@pytest.mark.parametrize(
    "name",
    ["Qwen3.5-35B-A3B", "Nemotron-3-Super-120B-A12B-FP8", "gemma-4-26B-A4B-it", "Kimi-K2.5", "InternVL2_5-8B",
     "AI21-Jamba-Mini-1.5", "Llama-4-Maverick-17B-128E-Instruct", "Kimi-Linear-48B-A3B-Instruct", "LFM2-8B-A1B",
     "MiMo-V2-Flash", "Voxtral-Mini-3B-2507", "dbrx-instruct"],
)  # fmt: skip
def test_wrong_value_of_any_key_is_read_or_refused_with_a_fix(name: str) -> None:
    whole, gpus = keys_of(name), [load_catalog().gpu("H100-SXM-80GB")]
    for path in paths_of(whole):
        for nonsense in (None, 0, -1, 10**300, 0.5, True, "", "x", [], [[0]], {}, {"a": {}}):
            for problem in problems_of(changed(whole, path, nonsense), gpus):
                assert problem.path
                assert problem.fix
                assert len(problem.message) < 250


def problems_of(keys: dict[str, Any], gpus: list[GpuKind]) -> tuple[Problem, ...]:
    try:
        fit(read_config(keys), gpus)
    except FleetError as error:
        return tuple(error.problems)
    return ()


def paths_of(part: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for key, value in part.items():
        yield (key,)
        if isinstance(value, dict):
            yield from ((key, *inner) for inner in paths_of(value))


def changed(part: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    return part | {path[0]: changed(part[path[0]], path[1:], value) if path[1:] else value}
