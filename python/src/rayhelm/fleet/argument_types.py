"""Pydantic types of vLLM's engine arguments, built from their JSON Schema when a file first sets one."""

import json
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Union

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

from rayhelm.errors import Fix
from rayhelm.facts.closed import Closed
from rayhelm.facts.engine_arguments import load_argument_schema
from rayhelm.fleet.base import Refusal
from rayhelm.fleet.lazy_record import LazyRecord

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

_LEFT_OUT: Any = None
"""Placeholder: only arguments that are written are kept, and null is refused."""

_TYPES: dict[str, Any] = {"boolean": bool, "integer": int, "number": float, "string": str}


def _without_defaults(schema: dict[str, Any]) -> None:
    for argument in schema.get("properties", {}).values():
        argument.pop("default", None)


class _Arguments(Closed):
    model_config = ConfigDict(strict=True, allow_inf_nan=False, json_schema_extra=_without_defaults)

    UNKNOWN: ClassVar[str] = "unknown key"
    """How a message about an unknown key starts."""


@cache
def build_argument_record() -> type[BaseModel]:
    """Return the record of all arguments. Takes tens of milliseconds."""
    schema = load_argument_schema()
    record = _Builder(schema["$defs"]).build("VllmArguments", schema)
    record.UNKNOWN = f"vLLM {schema['version']} has no argument"
    return record


class _Builder:
    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._records: dict[str, type[_Arguments]] = {}

    def build(self, name: str, schema: dict[str, Any]) -> type[_Arguments]:
        fields: dict[str, Any] = {key: self._build_field(key, below) for key, below in schema["properties"].items()}
        record: type[_Arguments] = create_model(name, __base__=_Arguments, __module__=__name__, **fields)
        return record

    def _build_field(self, key: str, schema: dict[str, Any]) -> tuple[Any, Any]:
        bounds = {
            "ge": schema.get("minimum"),
            "gt": schema.get("exclusiveMinimum"),
            "le": schema.get("maximum"),
            "lt": schema.get("exclusiveMaximum"),
        }
        info = Field(
            default=_LEFT_OUT,
            description=schema.get("description") or f"`{key}` of vLLM, which has no description of it.",
            examples=[_EXAMPLES[key]] if key in _EXAMPLES else None,
            **{name: limit for name, limit in bounds.items() if limit is not None},
        )
        return self._find_type(schema), info

    def _find_type(self, schema: dict[str, Any]) -> Any:
        if "$ref" in schema:
            return Annotated[self._find_record(schema["$ref"].rpartition("/")[2]), BeforeValidator(_refuse_json)]
        if "anyOf" in schema:
            return Union[tuple(self._find_type(member) for member in schema["anyOf"])]  # noqa: UP007  # made at run time
        if "enum" in schema:
            return Literal[tuple(schema["enum"])]
        if schema.get("type") == "array":
            return list[self._find_type(schema.get("items", {}))]  # type: ignore[misc]  # made at run time
        if schema.get("type") == "object":
            below = schema["additionalProperties"]
            inner = Any if below is True else self._find_type(below)
            return Annotated[dict[str, inner], BeforeValidator(_refuse_json)]  # type: ignore[valid-type]
        return _TYPES.get(schema.get("type", ""), Any)

    def _find_record(self, name: str) -> type[BaseModel]:
        if name not in self._records:
            self._records[name] = self.build(name, self._definitions[name])
        return self._records[name]


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


EngineArguments = Annotated[dict[str, Any], LazyRecord(build_argument_record)]
"""Engine arguments of vLLM in its spelling, kept as they were written."""
