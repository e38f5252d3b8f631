"""Pydantic types of vLLM's engine arguments, built from their JSON Schema when a file first sets one."""

import json
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from rayhelm.errors import Fix
from rayhelm.facts.engine_arguments import load_argument_schema
from rayhelm.fleet.base import Refusal
from rayhelm.fleet.lazy_record import LazyRecord
from rayhelm.fleet.schema_records import SchemaRecord, SchemaRecords

__all__ = ["EngineArguments", "build_argument_record"]

_EXAMPLES: dict[str, Any] = {
    "block_size": 16,
    "dtype": "bfloat16",
    "gpu_memory_utilization": 0.9,
    "hf_overrides": {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}},
    "kv_cache_dtype": "fp8",
    "limit_mm_per_prompt": {"image": 1},
    "load_format": "runai_streamer",
    "max_lora_rank": 16,
    "max_num_batched_tokens": 8192,
    "max_num_seqs": 64,
    "quantization": "awq",
    "seed": 0,
    "speculative_config": {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4},
    "structured_outputs_config": {"backend": "xgrammar"},
}
"""Values for the fix of a wrong one, where the first that the type allows is not a usual one."""


def _without_defaults(schema: dict[str, Any]) -> None:
    for argument in schema.get("properties", {}).values():
        argument.pop("default", None)


class _Arguments(SchemaRecord):
    PROGRAM = "vLLM"
    model_config = ConfigDict(strict=True, allow_inf_nan=False, json_schema_extra=_without_defaults)


@cache
def build_argument_record() -> type[BaseModel]:
    """Return the record of all arguments. Takes tens of milliseconds."""
    schema = load_argument_schema()
    record = _load_records().build("VllmArguments", schema)
    record.UNKNOWN = f"vLLM {schema['version']} has no argument"
    return record


@cache
def _build_part(names: frozenset[str]) -> type[BaseModel] | None:
    """Return the record of some arguments; None if one of them is unknown."""
    known = load_argument_schema()["properties"]
    if not names <= known.keys():
        return None
    return _load_records().build("VllmArguments", {"properties": {name: known[name] for name in sorted(names)}})


@cache
def _load_records() -> SchemaRecords:
    return SchemaRecords(load_argument_schema()["$defs"], _Arguments, _EXAMPLES, _refuse_json)


def _refuse_json(value: object) -> object:
    """Refuse JSON as text, which vLLM takes on its command line but not from Ray Serve."""
    if not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value)
    except ValueError:
        return value
    if not isinstance(parsed, dict):
        return value
    raise Refusal("takes a map; JSON as text is for the command line of vLLM", Fix("", parsed))


EngineArguments = Annotated[dict[str, Any], LazyRecord(build_argument_record, _build_part)]
"""Engine arguments of vLLM in its spelling, kept as they were written."""
