"""Pinned arguments of vLLM: accepted ones, and the message for each wrong one."""

import pytest

from unit.small_fleet import SMALL, read, the_problem


@pytest.mark.parametrize(
    ("pin", "says", "fix"),
    [
        ("max_num_seqs: 0", "greater than or equal to 1", "max_num_seqs: 64"),
        ("max_num_seqs: 1.5", "a whole number", "max_num_seqs: 64"),
        ("max_num_seqs: null", "has no value", "max_num_seqs: 64"),
        ("max_num_batched_tokens: many", "a whole number", "max_num_batched_tokens: 8192"),
        ("gpu_memory_utilization: 0", "greater than 0", "gpu_memory_utilization: 0.9"),
        ("gpu_memory_utilization: 90", "less than or equal to 1", "gpu_memory_utilization: 0.9"),
        ("enforce_eager: yes", "true or false, not `yes`", "enforce_eager: true"),
        ("enable_prefix_caching: 1", "true or false", "enable_prefix_caching: true"),
        ("kv_cache_dtype: int2", "is not one of", "known: auto"),
        ("kv_cache_dtype: fp8_e4m4", "is not one of", "kv_cache_dtype: fp8_e4m3"),
        ("dtype: bf16", "is not one of", "dtype: bfloat16"),
        ("quantization: 4", "YAML does not read `4` as text", "quantization: '4'"),
        (
            "limit_mm_per_prompt: {image: 1}",
            "takes a number, text, true or false; write it like on the command line of vLLM",
            "",
        ),
        ("maxNumSeqs: 4", "not a vLLM argument", "max_num_seqs"),
        ("tensor_parallel_size: 2", "the fleet file has a key for it", "parallelism: {tensor: 2}"),
        ("pipeline_parallel_size: 2", "the fleet file has a key for it", "parallelism: {pipeline: 2}"),
        ("max_model_len: 8192", "the fleet file has a key for it", "context: 8192"),
        ("data_parallel_size: 2", "the fleet file has a key for it", "replicas: 2"),
        ("model: a/b", "the fleet file has a key for it", "source: a/b"),
        ("served_model_name: x", "clients send the key of the model", "# remove `served_model_name`"),
        ("revision: abc", "the fleet file has a key for it", "revision: abc"),
        ("tokenizer_revision: abc", "pins the tokenizer too", "# remove `tokenizer_revision`"),
    ],
)
def test_fleet_refuses_each_wrong_engine_argument_with_a_fix(pin: str, says: str, fix: str) -> None:
    problem = the_problem(SMALL.replace("context: 4096", f"engine: {{{pin}}}"))
    assert problem.path == f"models.chat.engine.{pin.split(':')[0]}"
    assert problem.line == 5
    assert says in problem.message
    assert fix in str(problem.fix)


def test_engine_arguments_keep_only_written_keys() -> None:
    pins = "gpu_memory_utilization: 1, dtype: half, max_num_seqs: 8, swap_space: 2.5, enable_lora: true, other: null"
    engine = read(SMALL.replace("context: 4096", f"engine: {{{pins}}}")).models["chat"].engine
    assert engine == {
        "gpu_memory_utilization": 1,
        "dtype": "half",
        "max_num_seqs": 8,
        "swap_space": 2.5,
        "enable_lora": True,
        "other": None,
    }


def test_layers_are_accepted_with_and_without_pipeline() -> None:
    for pin in ("layers: [14, 14]", "pipeline: 2, layers: [14, 14]"):
        assert read(SMALL.replace("context: 4096", f"parallelism: {{{pin}}}")).models["chat"].parallelism
