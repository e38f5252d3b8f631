"""Pinned engine arguments of vLLM: known ones are checked here, others only by the parser of vLLM."""

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PlainSerializer

from rayhelm.errors import Fix
from rayhelm.spec.base import Record, Refusal

__all__ = ["ELSEWHERE", "REFUSED", "EngineArguments", "EngineValue"]


def _plain(value: object) -> object:
    if isinstance(value, (dict, list)):
        raise Refusal(
            "takes a number, text, true or false; write it like on the command line of vLLM",
            Fix("", json.dumps(value, default=str), "JSON as text"),
        )
    return value


EngineValue = Annotated[bool | int | float | str | None, BeforeValidator(_plain)]

ELSEWHERE: dict[str, tuple[str, ...]] = {
    "tensor_parallel_size": ("parallelism", "tensor"),
    "pipeline_parallel_size": ("parallelism", "pipeline"),
    "data_parallel_size": ("replicas",),
    "max_model_len": ("context",),
    "model": ("source",),
    "revision": ("revision",),
}
"""Arguments that have a key in the model of the fleet file, with that key."""
REFUSED = {
    "served_model_name": "clients send the key of the model in the fleet file",
    "tokenizer_revision": "`revision` of the model pins the tokenizer too",
    "trust_remote_code": "the server would run code from the repository of the model",
}
"""Arguments that are refused, with the reason."""


_LEFT_OUT: Any = None
"""Placeholder: only arguments that are written are kept, and null is refused."""


def _without_defaults(schema: dict[str, Any]) -> None:
    for argument in schema["properties"].values():
        del argument["default"]


class KnownArguments(Record):
    """Engine arguments in the spelling of vLLM. Other arguments are passed on unchecked."""

    model_config = ConfigDict(extra="allow", alias_generator=None, json_schema_extra=_without_defaults)
    __pydantic_extra__: dict[str, EngineValue]

    max_num_seqs: int = Field(default=_LEFT_OUT, ge=1, le=1_000_000, examples=[64])
    """Largest number of sequences in a batch."""
    max_num_batched_tokens: int = Field(default=_LEFT_OUT, ge=1, le=10_000_000, examples=[8192])
    """Largest number of tokens of one engine step."""
    gpu_memory_utilization: float = Field(default=_LEFT_OUT, gt=0, le=1, examples=[0.9])
    """Share of the memory of the whole GPU that the engine may use."""
    enforce_eager: bool = Field(default=_LEFT_OUT)
    """No CUDA graphs: slower, but starts faster and needs less memory."""
    enable_prefix_caching: bool = Field(default=_LEFT_OUT)
    """Reuse the KV cache of common prefixes."""
    disable_custom_all_reduce: bool = Field(default=_LEFT_OUT)
    """Needed if the GPUs of a host have no direct connection."""
    kv_cache_dtype: Literal["auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2"] = Field(default=_LEFT_OUT)
    """Type of the KV cache; `fp8` holds twice as many tokens."""
    dtype: Literal["auto", "bfloat16", "float16", "half", "float32", "float"] = Field(default=_LEFT_OUT)
    """Type of activations and of weights without quantization."""
    quantization: str = Field(default=_LEFT_OUT, min_length=1, examples=["awq"])
    """Quantization method, if the checkpoint does not name it."""
    load_format: str = Field(default=_LEFT_OUT, min_length=1, examples=["runai_streamer"])
    """Loader of the weights."""
    seed: int = Field(default=_LEFT_OUT, examples=[0])
    """Seed of sampling."""


def _as_written(arguments: KnownArguments) -> dict[str, Any]:
    return arguments.model_dump(exclude_unset=True)


if TYPE_CHECKING:
    EngineArguments = dict[str, EngineValue]
else:
    # Read by the record above, for its bounds, its JSON Schema and `explain`; kept as the map that was written.
    EngineArguments = Annotated[KnownArguments, AfterValidator(_as_written), PlainSerializer(dict)]
