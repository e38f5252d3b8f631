"""vLLM's arguments. Common ones are typed; `extra` takes any other, and `rayhelm lint` asks vLLM itself."""

from typing import Annotated, Any, Literal

from pydantic import Field

from rayhelm.values.common.base import Values

__all__ = ["Engine"]

Count = Annotated[int, Field(ge=1)]


class Engine(Values):
    """Keyword arguments of the engine, as vLLM names them but for the spelling."""

    tensor_parallel_size: Count = 1
    """GPUs that share each layer; keep it inside one host."""
    pipeline_parallel_size: Count = 1
    """Stages, each with some of the layers; this is what slow links bear."""
    max_model_len: Count
    """Context, tokens of prompt and answer together."""
    max_num_seqs: Count
    """Requests decoded together. Always stated: where no GPU is seen at start, vLLM falls back to other defaults."""
    max_num_batched_tokens: Count
    """Tokens of one engine step. Always stated, for the same reason."""
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Share of the card's memory that this engine may take, of the whole card also when it has a fraction of it."""
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    """Type of the activations and of unquantised weights."""
    quantization: str | None = None
    """Method, where the checkpoint does not tell it."""
    kv_cache_dtype: str = "auto"
    """Type of the KV cache: `fp8` holds twice the tokens."""
    enforce_eager: bool = False
    """No CUDA graphs: slower, starts sooner, less memory."""
    enable_prefix_caching: bool | None = None
    """Reuse of common beginnings; vLLM turns it on where the model bears it."""
    load_format: str | None = None
    """`dummy` makes random weights; `runai_streamer` streams from a bucket."""
    disable_custom_all_reduce: bool = False
    """Needed where cards of one host do not see each other directly."""
    trust_remote_code: bool = False
    """Runs code out of the model's repository inside the server; needs `trustRemoteCodeReason` on the model."""
    seed: int | None = None
    """Seed of sampling and of dummy weights."""
    extra: dict[str, Any] = {}
    """Other arguments in vLLM's own spelling (`snake_case`); a name that is typed above is refused here."""
