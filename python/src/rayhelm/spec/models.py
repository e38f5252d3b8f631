"""Models: what is served, for whom and how fast."""

from typing import Annotated

from pydantic import Field

from rayhelm.catalog.model import Task
from rayhelm.closed import ClosedCamel
from rayhelm.spec.names import Name
from rayhelm.spec.units import Duration

__all__ = ["ModelSpec", "Parallelism", "Replicas", "Slo", "Traffic"]


class Traffic(ClosedCamel):
    """The load that a model is planned for, at its peak."""

    requests_per_second: float = Field(gt=0, le=1e6, examples=[3])
    """Requests per second over all replicas."""
    input_tokens: int = Field(gt=0, le=10_000_000, examples=[1000])
    """Mean prompt length, tokens."""
    output_tokens: int | None = Field(default=None, gt=0, le=1_000_000, examples=[300])
    """Mean answer length, tokens; left out for tasks that generate none."""
    shared_prefix: float = Field(default=0.0, ge=0, le=1, examples=[0.5])
    """Share of the prompt that requests have in common (system prompt, documents): routing by prefix pays from it."""


class Slo(ClosedCamel):
    """How fast."""

    ttft: Duration | None = None
    """Time to first token."""
    tpot: Duration | None = None
    """Time per output token after the first."""


class Parallelism(ClosedCamel):
    """A pinned split of one replica over GPUs; what is left out the planner chooses."""

    tensor: int | None = Field(default=None, ge=1, le=64)
    """tensor_parallel_size."""
    pipeline: int | None = Field(default=None, ge=1, le=64)
    """pipeline_parallel_size."""
    layers: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Layers of each stage (VLLM_PP_LAYER_PARTITION); vLLM's own split when left out."""


class Replicas(ClosedCamel):
    """Bounds of autoscaling, pinned."""

    min: int = Field(default=1, ge=0, le=1000)
    max: int = Field(default=1, ge=1, le=1000)


class ModelSpec(ClosedCamel):
    """One served model. Its key is the name that clients send as `model`."""

    source: str = Field(min_length=1, examples=["Qwen/Qwen2.5-7B-Instruct"])
    """Hub id, path, `s3://`, `gs://` or `oci://`."""
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None = None
    """Commit of the hub repository, 40 hex digits. Without it the weights can change under you."""
    unpinned_reason: str | None = Field(default=None, min_length=8)
    """Why a model without `revision` is acceptable; the admission policy asks for it."""
    architecture: str | None = None
    """Catalogue entry or path of a `config.json` that describes the weights, when `source` is a path or a bucket."""
    task: Task = "chat"
    context: int | None = Field(default=None, ge=16, le=10_000_000, examples=[8192])
    """Longest prompt and answer together, tokens (max_model_len); the model's own when left out."""
    traffic: Traffic | None = None
    """Planned load; one replica is planned when left out."""
    slo: Slo = Slo()
    service: Name | None = None
    """Service that the model belongs to; one of its own, named after it, when left out."""
    pool: Name | None = None
    """Pin: the pool."""
    parallelism: Parallelism | None = None
    """Pin: the split."""
    replicas: Annotated[int, Field(ge=1, le=1000)] | Replicas | None = None
    """Pin: how many replicas, or the bounds of autoscaling."""
    gpu_fraction: float | None = Field(default=None, gt=0, le=1, examples=[0.5])
    """Pin: share of one card; models with shares can sit on one card together."""
    engine: dict[str, bool | int | float | str | None] = {}
    """Pin: vLLM engine arguments as they are (`max_num_seqs: 64`, `enforce_eager: true`)."""
