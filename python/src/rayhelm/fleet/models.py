"""Models of the fleet file: source, task, load and objectives."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from rayhelm.errors import Fix
from rayhelm.facts.tasks import Task
from rayhelm.fleet.adapters import Adapter
from rayhelm.fleet.argument_types import EngineArguments
from rayhelm.fleet.base import ListOf, Record, Refusal, short
from rayhelm.fleet.names import ModelName, Name
from rayhelm.fleet.traffic import Traffic
from rayhelm.fleet.units import Bytes, Duration

__all__ = ["STABLE", "GivenMemory", "ModelSpec", "Parallelism", "Replicas", "ServedAs", "Slo"]


STABLE = "stable"
"""Name of the version that a model has without `servedAs`."""


class Slo(Record):
    """Objectives of a model."""

    ttft: Duration | None = None
    """Time to first token."""
    tpot: Duration | None = None
    """Time per output token after the first."""
    latency_share: float = Field(default=0.95, ge=0.85, lt=1, examples=[0.99])
    """Share of the requests that have to meet `ttft`, and of those that have to meet `tpot`, for alerts.

    With less than 0.85, no share of late requests would use the error budget fast enough for an alert.
    """
    availability: float = Field(default=0.999, ge=0, lt=1, examples=[0.995])
    """Share of the responses that are no server error, for alerts; 0: no objective."""
    capacity_availability: float | None = Field(default=None, ge=0.5, lt=0.9999999, examples=[0.999])
    """Share of the time in which enough replicas for the planned load are up. The plan adds spare replicas for it, by
    the failure rate of GPUs; default: none."""
    window_days: int = Field(default=30, ge=1, le=30, examples=[7])
    """Days over which these shares hold."""
    unmeasured: Literal["expected", "pessimistic"] = Field(default="expected", examples=["pessimistic"])
    """What the plan counts with where no measurement is like a model, such as experts in 8 or 16 bits: `expected`, the
    model of speed alone, or `pessimistic`, what other sources measured, which was slower and needs more replicas."""


class GivenMemory(Record):
    """Memory of a model whose architecture rayhelm cannot read. The plan counts with it and marks it as unchecked."""

    weights: Bytes = Field(examples=["64GiB"])
    """All weights of one replica; the files of the checkpoint have this size."""
    kv_per_token: Bytes = Field(examples=["160KiB"])
    """KV cache of one token, over all layers. vLLM's start-up log has it: the GiB of the cache by its tokens."""
    kv_heads: int = Field(default=1, ge=1, le=1024, examples=[8])
    """KV heads, over which tensor parallelism divides the cache; 1: each GPU holds the whole cache of a token."""


class Parallelism(Record):
    """A pinned split of one replica over GPUs; the planner chooses what is absent."""

    tensor: int | None = Field(default=None, ge=1, le=64)
    """tensor_parallel_size."""
    pipeline: int | None = Field(default=None, ge=1, le=64)
    """pipeline_parallel_size."""
    layers: ListOf[Annotated[int, Field(ge=1, le=1000)]] = Field(default=(), max_length=64, examples=[[20, 28]])
    """Layers of each stage (VLLM_PP_LAYER_PARTITION); default: the split of vLLM."""
    expert: bool | None = None
    """enable_expert_parallel: each GPU of a stage holds whole experts of a mixture-of-experts model, instead of a part
    of each. By default only for tensor sizes that the experts cannot be divided by, and with `data`."""
    data: int | None = Field(default=None, ge=1, le=64)
    """data_parallel_size: ranks with their own attention and KV cache, which share the experts of a
    mixture-of-experts model. All ranks of a replica are on one host."""
    prefill_decode: bool | None = None
    """Compute prompts and answers on different replicas. The planner computes how many of each the load needs.
    `prefill` and `decode` pin the numbers."""
    prefill: int | None = Field(default=None, ge=1, le=1000, examples=[2])
    """Replicas that compute prompts and send the KV cache to the others; needs `decode`."""
    decode: int | None = Field(default=None, ge=1, le=1000, examples=[4])
    """Replicas that compute answers; needs `prefill`."""

    @property
    def separates_prefill(self) -> bool:
        """Whether prompts and answers are computed on different replicas."""
        return bool(self.prefill_decode or self.prefill)

    @property
    def ranks(self) -> int:
        return self.data or 1

    @model_validator(mode="after")
    def _check_roles(self) -> Self:
        if (self.prefill is None) != (self.decode is None):
            given, missing = ("prefill", "decode") if self.prefill else ("decode", "prefill")
            raise Refusal(f"`{given}` needs `{missing}`: the replicas of both kinds are pinned", Fix(missing, 1))
        if self.prefill and self.prefill_decode is False:
            message = f"`prefillDecode` is false, and `prefill` has {self.prefill} replicas"
            raise Refusal(message, Fix("prefillDecode", True))
        return self

    @model_validator(mode="after")
    def _check_stages(self) -> Self:
        stages = len(self.layers)
        if stages and self.pipeline not in (None, stages):
            raise Refusal(f"`layers` has {stages} stages, and `pipeline` is {self.pipeline}", Fix("pipeline", stages))
        return self


class Replicas(Record):
    """Pinned bounds of autoscaling."""

    min: int = Field(default=1, ge=0, le=1000, examples=[1])
    """Smallest number of replicas, also without load. With 0 no GPU pod stays, and the first request waits until the
    model is loaded."""
    max: int = Field(default=1, ge=1, le=1000, examples=[4])
    """Largest number of replicas."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.min > self.max:
            raise Refusal(f"`min` is {self.min} and `max` is {self.max}", Fix("", {"min": self.max, "max": self.min}))
        return self


def _check_operation(text: str) -> str:
    if not re.fullmatch(r"(/[A-Za-z0-9][A-Za-z0-9._-]*)+", text) or len(text) > 200:
        parts = [part for part in re.split("[^A-Za-z0-9._-]+", text) if part.strip("._-")]
        near = "".join(f"/{part.lstrip('._-')}" for part in parts)[:200] or "/v1/ocr"
        raise Refusal(f"`{short(text)}` is not a path that the gateway can allow", Fix("", near))
    return text


def _refuse_one_pool(pools: object) -> object:
    if isinstance(pools, list) and len(pools) == 1:
        raise Refusal("must have at least 2 items; one pool is `pool`", Fix("../pool", pools[0], replaces=""))
    return pools


class OwnApplication(Record):
    """A Serve application of yours, for `task: custom`. Its module has to be in the image."""

    import_path: str = Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$", examples=["mymodels.ocr:build_app"])
    """`module:builder`, as Ray Serve imports it."""
    deployment: str = Field(min_length=1, examples=["Ocr"])
    """Name of its deployment that uses the GPU."""
    args: dict[str, str | int | float | bool] = {}
    """Arguments of the builder, in addition to `model` and `source`, the path of the weights."""
    paths: dict[Annotated[str, AfterValidator(_check_operation)], Literal["POST", "GET"]] = Field(
        default={}, examples=[{"/v1/ocr": "POST"}]
    )
    """Its paths, each with its method. The gateway allows these below `/<model>`, and no others."""


class ServedAs(Record):
    """The model whose name this one serves too. The gateway distributes the requests between them."""

    model: ModelName
    """Name that clients send. They cannot use the name of this model itself."""
    version: Name | None = None
    """Name of another version, which clients can request in the header `x-model-version`. Default: the same version,
    so these are further replicas of the same weights, and the gateway chooses by load and cached prefixes."""
    weight: int | None = Field(default=None, ge=0, le=100, examples=[20])
    """Percentage of the requests that name no version; default: 0. The rest goes to the model itself. Set it to 0 to
    roll back."""


class ModelSpec(Record):
    """One served model. Its key is the name that clients send as `model`."""

    source: str = Field(min_length=1, examples=["Qwen/Qwen2.5-7B-Instruct"])
    """Hub id; `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or `azure://CONTAINER@ACCOUNT.blob.core.windows.net/PREFIX`
    with a `revision`; `pvc://CLAIM/PATH`, a folder on a claim that exists; `oci://IMAGE@sha256:DIGEST`, an image that
    the kubelet mounts, or a folder of it; or a path in the container. URLs without a `revision` are read by each server
    by itself."""
    revision: (
        Annotated[
            str,
            Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$", examples=["0123456789abcdef0123456789abcdef01234567"]),
        ]
        | None
    ) = None
    """Commit of the hub repository, 40 hexadecimal digits. For buckets: sha256 of the file `SHA256SUMS` below the
    prefix, 64 digits. Without it the weights can change at any time."""
    unpinned_reason: str | None = Field(
        default=None, min_length=8, examples=["the weights may change: this is a trial"]
    )
    """Why this model needs no `revision`. The admission policy `model-revision` requires one of the two."""
    shared_prefix_cache_reason: str | None = Field(
        default=None, min_length=8, max_length=1000, examples=["all tenants are one team"]
    )
    """Why all tenants of the model share its prefix cache. Default: each tenant has its own, because the time of a
    response would tell it what others asked."""
    architecture: str | None = Field(default=None, min_length=1, examples=["Qwen/Qwen2.5-7B-Instruct"])
    """Catalog entry, or path of the `config.json` or of the file of `rayhelm catalog add` that describes the weights,
    below the folder of the fleet file, if `source` is a path, a bucket or a model that rayhelm cannot read."""
    memory: GivenMemory | None = Field(default=None, examples=[{"weights": "64GiB", "kvPerToken": "160KiB"}])
    """Memory of a model that rayhelm cannot read, instead of `architecture`; needs `context`."""
    task: Task = "chat"
    """Task of the model; it decides the API."""
    application: OwnApplication | None = None
    """Serve application of the model, for `task: custom`."""
    context: int | None = Field(default=None, ge=16, le=10_000_000, examples=[8192])
    """Longest prompt and response together, tokens (max_model_len); default: the one of the model."""
    traffic: Traffic | None = None
    """Planned load; without it the plan has one replica."""
    slo: Slo = Slo()
    served_as: ServedAs | None = Field(default=None, examples=[{"model": "chat", "version": "next", "weight": 20}])
    """Serve the name of another model: as further replicas of it, or as another version."""
    aliases: ListOf[ModelName] = Field(default=(), max_length=20, examples=[["gpt-4o-mini", "Qwen/Qwen3-8B"]])
    """Further names that clients may send. Tenants that may call the model may use them; responses have the name of
    the model. They need an `image` with rayhelm."""
    spill_above: Annotated[int, Field(ge=1, le=1_000_000)] | Literal["planned"] | None = Field(
        default=None, examples=["planned"]
    )
    """Requests in flight per pod of the gateway, from which on further ones go to `gateway.remotes` of the cluster.
    `planned`: what the planned replicas of each cluster can serve, divided by the pods of its gateway. Default: only
    when no endpoint is available."""
    forwarding: Literal["remotes", "none"] = "remotes"
    """`remotes`: requests without an available endpoint in the cluster of their gateway are forwarded to those of
    `gateway.remotes` that serve the model. `none`: they never leave it, for reasons of law or cost, and the gateways
    of other clusters answer for the model only if these serve it."""
    adapters: dict[ModelName, Adapter] = Field(
        default={},
        max_length=100,
        examples=[{"legal": {"source": "acme/legal-lora", "revision": "0123456789abcdef0123456789abcdef01234567"}}],
    )
    """LoRA adapters of a chat model, by the name that clients send. They share its engine and its replicas."""
    adapter_slots: int | None = Field(default=None, ge=1, le=64, examples=[4])
    """Pin: adapters that one batch can use (max_loras); each slot takes GPU memory. Default: all, at most 8."""
    service: Name | None = None
    """Service that the model belongs to; default: a service with the Kubernetes name that is derived
    from the name of the model."""
    pool: Name | None = None
    """Pin: the pool."""
    pools: Annotated[ListOf[Name], BeforeValidator(_refuse_one_pool)] = Field(
        default=(), min_length=2, max_length=8, examples=[["reserved", "burst"]]
    )
    """Pools of one cluster over which the replicas are distributed, instead of `pool`: as many as the first one has
    room for, the rest on the next ones, and at least one on each. Each pool after the first has a model and service of
    its own, named `MODEL-POOL`; clients see one model."""
    parallelism: Parallelism | None = None
    """Pin: the split."""
    replicas: Annotated[int, Field(ge=1, le=1000)] | Replicas | None = None
    """Pin: the number of replicas, or the bounds of autoscaling."""
    scaling: Literal["ongoing-requests", "engine-queue"] = "ongoing-requests"
    """Metric of autoscaling. `ongoing-requests` is the count of Ray Serve. `engine-queue` corrects its target by the
    queues of the engines and `slo.ttft`; it needs `prometheus` of the cluster, and an `image` with rayhelm."""
    gpu_fraction: float | None = Field(default=None, ge=0.05, le=1, examples=[0.5])
    """Pin: share of one GPU. Several models with shares can use one GPU."""
    engine: EngineArguments = Field(default={}, examples=[{"max_num_seqs": 64}])
    """Pin: engine arguments of vLLM, in its spelling (`max_num_seqs: 64`, `enforce_eager: true`)."""

    @property
    def states_traffic(self) -> bool:
        """Whether the load is one that the fleet file has, and not the part of another model."""
        return self.traffic is not None and "traffic" in self.model_fields_set
