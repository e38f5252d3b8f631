"""Which splits vLLM takes, and how it spreads layers."""

import pytest

from rayhelm.errors import FleetError
from rayhelm.facts import load_catalog
from rayhelm.facts.engines import find_engine
from rayhelm.planner.memory.parallelism import (
    find_partition,
    list_split_errors,
    list_tensor_parallel_sizes,
    split_layers,
)
from rayhelm.planner.shape import ReplicaShape

ENGINE, _ = find_engine("0.29.0")


@pytest.mark.parametrize(
    ("layers", "stages", "expected"),
    [
        (64, 2, (32, 32)),
        (126, 4, (31, 32, 32, 31)),
        (61, 2, (31, 30)),
        (62, 4, (15, 16, 16, 15)),
        (80, 3, (27, 27, 26)),
    ],
)
def test_remaining_layers_go_to_the_stages_before_the_last(layers: int, stages: int, expected: tuple[int, ...]) -> None:
    assert split_layers(layers, stages) == expected


@pytest.mark.parametrize(
    ("model", "tp", "said"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", 3, "64 attention heads are not divisible"),
        ("Qwen/Qwen2.5-7B-Instruct", 8, "28 attention heads are not divisible"),
        ("microsoft/phi-4", 4, "10 KV heads are neither a multiple nor"),
        ("Qwen/Qwen3-32B-AWQ", 16, "is 1600 per rank, not a multiple of the quantization group 128"),
        ("Qwen/Qwen3-235B-A22B-FP8", 8, "is 192 per rank, not a multiple of the quantization group 128"),
        ("openai/whisper-large-v3", 8, "20 attention heads are not divisible"),
    ],
)
def test_refused_tensor_split_names_what_is_not_divisible(model: str, tp: int, said: str) -> None:
    assert any(
        said in objection for objection in list_split_errors(load_catalog().model(model), ReplicaShape(tp), ENGINE)
    )


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", (1, 2, 4, 8, 16, 32)),
        ("Qwen/Qwen3-32B-AWQ", (1, 2, 4, 8)),
        ("Qwen/Qwen3-235B-A22B-FP8", (1, 2, 4)),
        ("openai/gpt-oss-120b", (1, 2, 4, 8, 16, 32)),
        ("deepseek-ai/DeepSeek-V3", (1, 2, 4, 8, 16)),
    ],
)
def test_valid_tensor_parallel_sizes(model: str, sizes: tuple[int, ...]) -> None:
    assert list_tensor_parallel_sizes(load_catalog().model(model), ENGINE) == sizes


def test_padded_vocabulary_allows_all_powers_of_two() -> None:
    odd = load_catalog().model("meta-llama/Llama-3.1-8B-Instruct").model_copy(update={"vocab": 128_257})
    assert list_split_errors(odd, ReplicaShape(8), ENGINE) == ()


@pytest.mark.parametrize("model", ["openai/whisper-large-v3", "BAAI/bge-large-en-v1.5"])
def test_encoders_refuse_pipeline_parallelism(model: str) -> None:
    assert any(
        "no pipeline parallelism" in said
        for said in list_split_errors(load_catalog().model(model), ReplicaShape(pp=2), ENGINE)
    )


def test_pipeline_with_more_stages_than_layers_is_refused() -> None:
    assert any(
        "are fewer than 41 pipeline stages" in said
        for said in list_split_errors(load_catalog().model("Qwen/Qwen3-14B"), ReplicaShape(pp=41), ENGINE)
    )


@pytest.mark.parametrize("given", [(40,), (20, 19), (41, -1), (40, 0)])
def test_wrong_partition_is_refused_with_the_split_of_vllm(given: tuple[int, ...]) -> None:
    with pytest.raises(FleetError, match=r"layers: \[20, 20\]"):
        find_partition(load_catalog().model("Qwen/Qwen3-14B"), ReplicaShape(pp=2, partition=given))
