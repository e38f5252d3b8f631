"""Pinned arguments of vLLM: accepted ones, and the message for each wrong one."""

from pathlib import Path
from typing import Any

import pytest

from rayhelm.facts.engine_arguments import (
    load_argument_schema,
    load_owned_arguments,
    load_uncounted_arguments,
)
from rayhelm.fleet.argument_types import build_argument_record
from rayhelm.fleet.load import load_fleet
from rayhelm.planner.planner import plan_fleet
from shared.small_fleet import SMALL, read, the_problem

BLOCKS = """\
fleet: small
pools: {gpu: {gpu: L4-24GB, nodes: 2}}
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}}}
models:
  chat:
    source: Qwen/Qwen2.5-7B-Instruct
"""


@pytest.mark.parametrize(
    ("pin", "says", "fix"),
    [
        ("max_num_seqs: 0", "greater than or equal to 1", "max_num_seqs: 64"),
        ("max_num_seqs: 1.5", "a whole number", "max_num_seqs: 2"),
        ("max_num_seqs: null", "has no value", "max_num_seqs: 64"),
        ("max_num_batched_tokens: many", "a whole number", "max_num_batched_tokens: 8192"),
        ("gpu_memory_utilization: 0", "greater than 0", "gpu_memory_utilization: 0.9"),
        ("gpu_memory_utilization: 90", "less than or equal to 1", "gpu_memory_utilization: 0.9"),
        ("enforce_eager: yes", "true or false, not `yes`", "enforce_eager: true"),
        ("enable_prefix_caching: 1", "true or false", "enable_prefix_caching: true"),
        ("kv_cache_dtype: int2", "is not one of", "kv_cache_dtype: "),
        ("kv_cache_dtype: fp8_e4m4", "is not one of", "kv_cache_dtype: fp8_e4m3"),
        ("dtype: bf16", "is not one of", "dtype: bfloat16"),
        ("quantization: 4", "YAML does not read `4` as a string", "quantization: '4'"),
        ("limit_mm_per_prompt: '{\"image\": 1}'", "takes a map", "limit_mm_per_prompt: {image: 1}"),
        ("limit_mm_per_prompt: 1", "a map, not `1`", "limit_mm_per_prompt: {image: 1}"),
        ("max_lora_rank: 16", "the `rank` of the adapters sets it", "# remove `max_lora_rank`"),
        ("tool_call_parser: hermess", "is not one of 49 values", "tool_call_parser: hermes"),
        ("maxNumSeqs: 4", "vLLM 0.29.0 has no argument `maxNumSeqs`; did you mean `max_num_seqs`?", "max_num_seqs: 4"),
        ("swap_space: 4", "vLLM 0.29.0 has no argument `swap_space`", "# remove `swap_space`"),
        ("tensor_parallel_size: 2", "the fleet file has a key for it", "parallelism: {tensor: 2}"),
        ("pipeline_parallel_size: 2", "the fleet file has a key for it", "parallelism: {pipeline: 2}"),
        ("max_model_len: 8192", "the fleet file has a key for it", "context: 8192"),
        ("data_parallel_size: 2", "the fleet file has a key for it", "parallelism: {data: 2}"),
        ("model: a/b", "the file has `source`", "# remove `model`: `source` stays Qwen/Qwen2.5-7B-Instruct"),
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
    pins = "gpu_memory_utilization: 1, dtype: half, max_num_seqs: 8, cpu_offload_gb: 2.5, fully_sharded_loras: true"
    engine = read(SMALL.replace("context: 4096", f"engine: {{{pins}}}")).models["chat"].engine
    assert engine == {
        "gpu_memory_utilization": 1,
        "dtype": "half",
        "max_num_seqs": 8,
        "cpu_offload_gb": 2.5,
        "fully_sharded_loras": True,
    }


@pytest.mark.parametrize(
    ("pin", "key", "says", "fix"),
    [
        ("speculative_config: {method: ngra}", "method", "is not one of 38 values", "method: ngram"),
        (
            "speculative_config: {num_speculative_token: 3}",
            "num_speculative_token",
            "did you mean",
            "num_speculative_tok",
        ),
        ("speculative_config: {num_speculative_tokens: 0}", "num_speculative_tokens", "greater than 0", "_tokens: 1"),
        ("kv_transfer_config: {kv_role: kv_bot}", "kv_role", "is not one of 'kv_", "kv_role: kv_both"),
        ("structured_outputs_config: {backend: xgrammer}", "backend", "is not one of", "backend: xgrammar"),
        ("limit_mm_per_prompt: {image: many}", "image", "a whole number", "image: 1"),
    ],
)
def test_fleet_refuses_a_wrong_key_inside_an_engine_argument(pin: str, key: str, says: str, fix: str) -> None:
    argument, inner = pin.rstrip("}").split(": {")
    problem = the_problem(BLOCKS + f"    engine:\n      {argument}:\n        {inner}\n")
    assert problem.path == f"models.chat.engine.{argument}.{key}"
    assert problem.line == 9
    assert says in problem.message
    assert fix in str(problem.fix)


@pytest.mark.parametrize("argument", sorted(load_owned_arguments()))
def test_fleet_refuses_an_argument_that_something_else_sets(argument: str) -> None:
    value = _example(load_argument_schema()["properties"][argument])
    problem = the_problem(SMALL.replace("context: 4096", f"engine: {{{argument}: {value}}}"))
    assert problem.path == f"models.chat.engine.{argument}"
    assert "not allowed" in problem.message


def test_fleet_accepts_an_owned_argument_with_its_harmless_value() -> None:
    rows = {name: row.harmless for name, row in load_owned_arguments().items() if row.harmless is not None}
    pins = ", ".join(f"{name}: {str(value).lower()}" for name, value in rows.items())
    assert read(SMALL.replace("context: 4096", f"engine: {{{pins}}}")).models["chat"].engine == rows


def test_every_owned_and_uncounted_argument_is_one_of_vllm() -> None:
    known = load_argument_schema()["properties"]
    assert {*load_owned_arguments(), *load_uncounted_arguments()} <= {*known}


def test_every_argument_type_of_vllm_becomes_a_type_of_the_fleet_file() -> None:
    assert {*build_argument_record().model_fields} == {*load_argument_schema()["properties"]}


def test_plan_lists_what_it_does_not_count_of_engine_arguments(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yaml"
    speculation = "speculative_config: {method: ngram, num_speculative_tokens: 3}"
    pins = f"{speculation}, fully_sharded_loras: true, kv_cache_dtype: turboquant_4bit_nc"
    fleet.write_text(BLOCKS + f"    engine: {{{pins}}}\n    context: 4096\n")
    unknown = " ".join(plan_fleet(load_fleet(fleet)).models["chat"].unknown)
    assert "`speculative_config`: weights and KV cache of the draft model" in unknown
    assert "`fully_sharded_loras`: slots of adapters" in unknown
    assert "`kv_cache_dtype: turboquant_4bit_nc`: the estimate counts 16 bits" in unknown


def _example(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return str(schema["enum"][0])
    kind = schema.get("type") or schema["anyOf"][0]["type"]
    if kind == "array":
        return {"string": "[text]", "integer": "[1]"}.get(schema["items"].get("type"), "[]")
    return {"boolean": "true", "integer": "2", "number": "2", "string": "text"}[kind]


def test_layers_are_accepted_with_and_without_pipeline() -> None:
    for pin in ("layers: [14, 14]", "pipeline: 2, layers: [14, 14]"):
        assert read(SMALL.replace("context: 4096", f"parallelism: {{{pin}}}")).models["chat"].parallelism
