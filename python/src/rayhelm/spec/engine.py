"""vLLM's arguments as pins: the ones that rayhelm knows are checked here, any other goes through to vLLM's parser."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PlainSerializer

from rayhelm.spec.base import Record, Refusal

__all__ = ["ELSEWHERE", "EngineArguments", "EngineValue"]


def _plain(value: object) -> object:
    if isinstance(value, (dict, list)):
        raise Refusal("takes a number, text, true or false", "write the argument as vLLM's command line takes it")
    return value


EngineValue = Annotated[bool | int | float | str | None, BeforeValidator(_plain)]

ELSEWHERE = {
    "tensor_parallel_size": "parallelism: {{tensor: {value}}}",
    "pipeline_parallel_size": "parallelism: {{pipeline: {value}}}",
    "data_parallel_size": "replicas: {value}",
    "max_model_len": "context: {value}",
    "model": "source: {value}",
    "served_model_name": "remove it: the model's key in the fleet file is the name that clients send",
    "revision": "revision: {value}   # beside `source`, not under `engine`",
    "tokenizer_revision": "remove it: `revision`, beside `source`, pins the tokenizer too",
    "trust_remote_code": "choose a checkpoint that vLLM's own classes load, and remove the key",
}
"""Arguments that the fleet file says in words of its own, with these words."""


_LEFT_OUT: Any = None
"""Not what vLLM does then: only what was written is kept, and nobody may write null."""


def _without_defaults(schema: dict[str, Any]) -> None:
    for argument in schema["properties"].values():
        del argument["default"]


class KnownArguments(Record):
    """vLLM engine arguments, spelled as vLLM spells them. Others than these are taken as they are."""

    model_config = ConfigDict(extra="allow", alias_generator=None, json_schema_extra=_without_defaults)
    __pydantic_extra__: dict[str, EngineValue]

    max_num_seqs: int = Field(default=_LEFT_OUT, ge=1, le=1_000_000, examples=[64])
    """Requests decoded together."""
    max_num_batched_tokens: int = Field(default=_LEFT_OUT, ge=1, le=10_000_000, examples=[8192])
    """Tokens of one engine step."""
    gpu_memory_utilization: float = Field(default=_LEFT_OUT, gt=0, le=1, examples=[0.9])
    """Share of the whole card's memory that the engine may take."""
    enforce_eager: bool = Field(default=_LEFT_OUT)
    """No CUDA graphs: slower, starts sooner, less memory."""
    enable_prefix_caching: bool = Field(default=_LEFT_OUT)
    """Reuse of common beginnings."""
    disable_custom_all_reduce: bool = Field(default=_LEFT_OUT)
    """Needed where cards of one host do not see each other directly."""
    kv_cache_dtype: Literal["auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2"] = Field(default=_LEFT_OUT)
    """Type of the KV cache: `fp8` holds twice the tokens."""
    dtype: Literal["auto", "bfloat16", "float16", "half", "float32", "float"] = Field(default=_LEFT_OUT)
    """Type of the activations and of unquantised weights."""
    quantization: str = Field(default=_LEFT_OUT, min_length=1, examples=["awq"])
    """Method, where the checkpoint does not tell it."""
    load_format: str = Field(default=_LEFT_OUT, min_length=1, examples=["runai_streamer"])
    """How weights are read."""
    seed: int = Field(default=_LEFT_OUT, examples=[0])
    """Seed of sampling."""


def _as_written(arguments: KnownArguments) -> dict[str, Any]:
    return arguments.model_dump(exclude_unset=True)


if TYPE_CHECKING:
    EngineArguments = dict[str, EngineValue]
else:
    # Read by the record above, for its bounds, its JSON Schema and `explain`; kept as the map that was written.
    EngineArguments = Annotated[KnownArguments, AfterValidator(_as_written), PlainSerializer(dict)]
