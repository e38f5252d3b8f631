"""Models: what is served, for whom and how fast."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from rayhelm.catalog.tasks import Task
from rayhelm.spec.base import ListOf, Record, Refusal, short
from rayhelm.spec.engine import EngineArguments
from rayhelm.spec.names import Name
from rayhelm.spec.units import Duration

__all__ = ["STABLE", "ModelSpec", "Parallelism", "Replicas", "ServedAs", "Slo", "Traffic"]


STABLE = "stable"
"""The version of a model that is its own."""


class Traffic(Record):
    """The load that a model is planned for, at its peak."""

    requests_per_second: float = Field(gt=0, le=1e6, examples=[3])
    """Requests per second over all replicas."""
    input_tokens: int = Field(gt=0, le=10_000_000, examples=[1000])
    """Mean prompt length, tokens."""
    output_tokens: int | None = Field(default=None, gt=0, le=1_000_000, examples=[300])
    """Mean answer length, tokens; left out for tasks that generate none."""
    shared_prefix: float = Field(default=0.0, ge=0, le=1, examples=[0.5])
    """Share of the prompt that requests have in common (system prompt, documents): routing by prefix pays from it."""


class Slo(Record):
    """How fast it has to answer."""

    ttft: Duration | None = None
    """Time to first token."""
    tpot: Duration | None = None
    """Time per output token after the first."""


class Parallelism(Record):
    """A pinned split of one replica over GPUs; what is left out the planner chooses."""

    tensor: int | None = Field(default=None, ge=1, le=64)
    """tensor_parallel_size."""
    pipeline: int | None = Field(default=None, ge=1, le=64)
    """pipeline_parallel_size."""
    layers: ListOf[Annotated[int, Field(ge=1, le=1000)]] = Field(default=(), max_length=64, examples=[[20, 28]])
    """Layers of each stage (VLLM_PP_LAYER_PARTITION); vLLM's own split when left out."""

    @model_validator(mode="after")
    def _a_stage_for_each_part(self) -> Self:
        stages = len(self.layers)
        if stages and self.pipeline not in (None, stages):
            raise Refusal(f"`layers` has {stages} stages, and `pipeline` is {self.pipeline}", f"pipeline: {stages}")
        return self


class Replicas(Record):
    """Bounds of autoscaling, pinned."""

    min: int = Field(default=1, ge=0, le=1000, examples=[1])
    """Replicas that stay without load."""
    max: int = Field(default=1, ge=1, le=1000, examples=[4])
    """Replicas at most."""

    @model_validator(mode="after")
    def _least_first(self) -> Self:
        if self.min > self.max:
            raise Refusal(
                f"`min` is {self.min} and `max` is {self.max}", f"replicas: {{min: {self.max}, max: {self.min}}}"
            )
        return self


def _operation(text: str) -> str:
    if not re.fullmatch(r"(/[A-Za-z0-9][A-Za-z0-9._-]*)+", text) or len(text) > 200:
        raise Refusal(f"`{short(text)}` is not a path that the gateway can let through", "paths: {/v1/ocr: POST}")
    return text


class OwnApplication(Record):
    """A Serve application of your own, for `task: custom`. Its module has to be in the image."""

    import_path: str = Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$", examples=["mymodels.ocr:build_app"])
    """`module:builder`, as Ray Serve imports it."""
    deployment: str = Field(min_length=1, examples=["Ocr"])
    """Name of the deployment in it that holds the card."""
    args: dict[str, str | int | float | bool] = {}
    """Arguments of the builder, beside `model`, and `source` where the weights lie."""
    paths: dict[Annotated[str, AfterValidator(_operation)], Literal["POST", "GET"]] = Field(
        default={}, examples=[{"/v1/ocr": "POST"}]
    )
    """Paths that it answers, each with its method. The gateway opens them below `/<model>`, and no other."""


class ServedAs(Record):
    """Another model, whose requests this one answers too: they are joined by the gateway."""

    model: Name
    """Its name, which clients send. This one's own name is then known to nobody."""
    version: Name | None = None
    """This is another version, and clients may name it in the header `x-model-version`. Left out: the same weights in
    another place, and the gateway chooses by load and by what each has cached."""
    weight: int | None = Field(default=None, ge=0, le=100, examples=[20])
    """Percent of the requests that name no version; 0 when left out. The rest is the model's own: a rollback is one
    number."""


class ModelSpec(Record):
    """One served model. Its key is the name that clients send as `model`."""

    source: str = Field(min_length=1, examples=["Qwen/Qwen2.5-7B-Instruct"])
    """Hub id, path, `s3://`, `gs://` or `oci://`."""
    revision: (
        Annotated[str, Field(pattern=r"^[0-9a-f]{40}$", examples=["0123456789abcdef0123456789abcdef01234567"])] | None
    ) = None
    """Commit of the hub repository, 40 hex digits. Without it the weights can change under you."""
    unpinned_reason: str | None = Field(default=None, min_length=8, examples=["weights are of our own bucket"])
    """Why a model without `revision` is acceptable; the admission policy asks for it."""
    architecture: str | None = Field(default=None, min_length=1, examples=["Qwen/Qwen2.5-7B-Instruct"])
    """Catalog entry or path of a `config.json` that describes the weights, when `source` is a path or a bucket."""
    task: Task = "chat"
    """What clients do with it."""
    application: OwnApplication | None = None
    """What serves it, for `task: custom`."""
    context: int | None = Field(default=None, ge=16, le=10_000_000, examples=[8192])
    """Longest prompt and answer together, tokens (max_model_len); the model's own when left out."""
    traffic: Traffic | None = None
    """Planned load; one replica is planned when left out."""
    slo: Slo = Slo()
    served_as: ServedAs | None = Field(default=None, examples=[{"model": "chat", "version": "next", "weight": 20}])
    """Another place of a model, or another version of it."""
    service: Name | None = None
    """Service that the model belongs to; one of its own, named after it, when left out."""
    pool: Name | None = None
    """Pin: the pool."""
    parallelism: Parallelism | None = None
    """Pin: the split."""
    replicas: Annotated[int, Field(ge=1, le=1000)] | Replicas | None = None
    """Pin: how many replicas, or the bounds of autoscaling."""
    scaling: Literal["ongoing-requests", "engine-queue"] = "ongoing-requests"
    """What autoscaling goes by: Ray's own count of requests, or that with a target which the engines correct, by their
    queues and by `slo.ttft`. The latter needs the cluster's `prometheus`, and rayhelm in its `image`."""
    gpu_fraction: float | None = Field(default=None, ge=0.05, le=1, examples=[0.5])
    """Pin: share of one card; models with shares can sit on one card together."""
    engine: EngineArguments = Field(default={}, examples=[{"max_num_seqs": 64}])
    """Pin: vLLM engine arguments as they are (`max_num_seqs: 64`, `enforce_eager: true`)."""
