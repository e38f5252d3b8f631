"""Engine arguments of vLLM. Those that the chart reads have keys; `extra` takes the others, with vLLM's types."""

from typing import Annotated, Any, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Values
from rayhelm.facts.engine_arguments import load_owned_arguments
from rayhelm.fleet.argument_types import EngineArguments

__all__ = ["Engine", "list_refused_arguments"]

Count = Annotated[int, Field(ge=1)]


class Engine(Values):
    """Engine arguments of vLLM, in camelCase."""

    tensor_parallel_size: Count = 1
    """GPUs that share each layer. Keep them in one host."""
    pipeline_parallel_size: Count = 1
    """Pipeline stages, each with a part of the layers. Stages need less network bandwidth than tensor parallelism."""
    enable_expert_parallel: bool | None = None
    """Give each GPU of a stage whole experts of a mixture-of-experts model, instead of a part of each expert."""
    data_parallel_size: Count | None = None
    """Ranks that share the experts of a mixture-of-experts model, each with its own attention and KV cache. Above 1 the
    application has this model alone, and `build_dp_openai_app` of Ray Serve LLM builds it: each rank is a replica of
    Serve, and Ray starts and restarts the ranks of a group together. Limits and targets of requests are those of one
    rank; `minReplicas`, `maxReplicas` and `initialReplicas` count groups."""
    max_model_len: Count
    """Context length: tokens of prompt and response together."""
    max_num_seqs: Count
    """Maximum number of sequences in one batch. Required, because vLLM's default differs when the starting process sees
    no GPU."""
    max_num_batched_tokens: Count
    """Maximum number of tokens in one engine step. Required for the same reason."""
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Share of the GPU's memory that the engine uses. It counts the whole GPU, also when `gpuFraction` is below 1."""
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    """Data type of activations and unquantized weights."""
    quantization: str | None = None
    """Quantization method, when the checkpoint does not state it."""
    kv_cache_dtype: str = "auto"
    """Data type of the KV cache. `fp8` holds twice the tokens of a 16-bit type."""
    enforce_eager: bool = False
    """Run without CUDA graphs: faster start and less memory, but slower."""
    enable_prefix_caching: bool | None = None
    """Reuse the KV cache of shared prefixes. vLLM turns it on by default for models that support it."""
    load_format: str | None = None
    """`dummy` makes random weights, `runai_streamer` streams weights from a bucket."""
    disable_custom_all_reduce: bool = False
    """Needed when the GPUs of a host have no peer-to-peer access."""
    trust_remote_code: bool = False
    """Run code from the model's repository in the server. Requires `trustRemoteCodeReason` on the model."""
    seed: int | None = None
    """Seed of sampling and of dummy weights."""
    extra: EngineArguments = {}
    """Other engine arguments in vLLM's own spelling (`snake_case`), with maps as maps, for example
    `speculative_config: {method: ngram}`. The chart refuses arguments that have a key above, and names that the pinned
    vLLM does not have."""
    unchecked: dict[str, Any] = {}
    """Engine arguments that the pinned vLLM does not have, for an image with another version. Their names and types are
    not checked."""


def list_refused_arguments() -> dict[str, dict[str, Any]]:
    """Return the arguments that `extra` and `unchecked` refuse, by name: those with a key of their own, and those that
    something else sets."""
    typed = {name: field.alias for name, field in Engine.model_fields.items() if name not in ("extra", "unchecked")}
    owned = {
        name: row.model_dump(include={"why", "harmless"}, exclude_none=True)
        for name, row in load_owned_arguments().items()
    }
    return owned | {name: {"why": f"engine.{alias} sets it"} for name, alias in typed.items()}
