"""The plan: the decisions for every model, with reasons. Its JSON is a contract (`rayhelm plan --format json`)."""

from functools import cached_property
from typing import Annotated, Any

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from rayhelm.facts import Catalog
from rayhelm.facts.closed import Closed, Unchecked
from rayhelm.facts.tasks import DataPath, Task
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.load import LoadedFleet
from rayhelm.planner.autoscaling import AutoscalingPlan
from rayhelm.planner.override_plan import OverridePlan
from rayhelm.planner.pool_use import NodeGroup, PoolUse
from rayhelm.planner.reason import Reason
from rayhelm.planner.resolved import Resolved
from rayhelm.planner.service_pods import ClaimPlan, WorkerPlan
from rayhelm.planner.shape import ReplicaShape

__all__ = [
    "AdapterPlan",
    "AutoscalingPlan",
    "ClaimPlan",
    "Estimate",
    "GatewayPlan",
    "ModelPlan",
    "NodeGroup",
    "OverridePlan",
    "Plan",
    "PoolUse",
    "PrefillDecodePlan",
    "Reason",
    "RolePlan",
    "ServicePlan",
    "StagePlan",
    "TenantPlan",
    "VersionPlan",
    "WorkerPlan",
]


class StagePlan(Closed):
    """One pipeline stage."""

    gpu: str
    host: str = ""  # of the pool; empty if all hosts are alike
    layers: int
    weights_gib: float
    """Per GPU."""
    kv_gib: float
    """KV cache per GPU, GiB."""


class Estimate(Closed):
    """Expected latency and throughput at the planned load, with the error of the estimate."""

    ttft_s: float | None = None
    """Time to first token at the planned load, seconds; without traffic, of one request at a time."""
    ttft_interval_s: tuple[float, float] | None = None
    """90 % interval of `ttft_s`, seconds."""
    tpot_s: float | None = None
    """Time per output token at the planned concurrency, seconds."""
    tpot_interval_s: tuple[float, float] | None = None
    """90 % interval of `tpot_s`, seconds."""
    basis: str = ""
    """`measured`: this load; `interpolated`: the model on this GPU; `model`: neither; empty without an estimate."""
    concurrency: float | None = None
    """Requests in flight per replica at the planned load."""
    tpot_concurrency: int | None = None
    """Requests in flight of `tpot_s` without traffic, where `ttft_s` is that of one request; None with traffic."""
    tokens_per_second: float | None = None
    """Output tokens per second and replica, at the concurrency that meets the objective."""
    error: str = ""
    """Error of such estimates against measurements."""


class AdapterPlan(Closed):
    """A LoRA adapter of a model."""

    source: str
    revision: str | None
    base_model: str
    """Model that it was trained on, as its `adapter_config.json` names it."""
    rank: int
    """Highest rank that its `adapter_config.json` may have."""


class RolePlan(Closed):
    """The replicas that compute prompts, or those that compute answers."""

    replicas: int
    """At the planned load."""
    min_replicas: int
    max_replicas: int
    target_ongoing_requests: int
    """Target of autoscaling: requests in flight per replica."""
    max_ongoing_requests: int
    gpu_s_per_request: float
    """GPU-seconds of one request."""


class PrefillDecodePlan(Closed):
    """Prompts and answers on different replicas. Both kinds have the split and the engine arguments of the model."""

    prefill: RolePlan
    decode: RolePlan
    connector: str
    """Class of vLLM that moves the KV cache."""
    kv_cache_mb: float
    """KV cache of the mean prompt, MB (10^6)."""
    transfer_s: float
    """Seconds until it is on the decode replica."""
    prefill_s: float
    """Seconds that the GPUs compute this prompt."""


class ModelPlan(Closed):
    """Placement, split and settings of one model."""

    model: str
    written: SkipJsonSchema[Annotated[str, Field(exclude=True)]]
    """Its name in the fleet file: another one on the further pools of a model with `pools`."""
    served_as: str
    """Name that clients send: its own, or the served model name that it shares with another model."""
    version: str
    """Version of the served model."""
    application: str
    """Name of its Serve application, a Kubernetes name derived from the served name."""
    service: str
    source: str
    revision: str | None
    architecture: str
    """First of `architectures` in config.json."""
    task: Task
    cluster: str
    pool: str
    hosts: tuple[str, ...] = ()
    """Host of each stage, in a pool with different hosts."""
    gpu: str
    """GPU id; different ones are joined with `+`."""
    tensor_parallel_size: int
    pipeline_parallel_size: int
    data_parallel_size: int = 1
    """Ranks of a replica, each with its own attention, KV cache, `max_num_seqs` and `max_num_batched_tokens`."""
    expert_parallel: bool = False
    """Each GPU of a stage holds whole experts, instead of a part of each."""
    prefill_decode: PrefillDecodePlan | None = None
    """How many replicas for prompts and answers. Estimate and load are of a decode replica. None: each has both."""
    layer_partition: tuple[int, ...] = ()
    """Layers of each stage if vLLM's own split does not fit; else empty."""
    load_share: float = 1.0
    """Part of the `traffic` in the fleet file that this model serves; below 1 with `pools`."""
    replicas: int
    """Replicas at the planned load, of both kinds if prompts and answers have their own."""
    min_replicas: int
    max_replicas: int
    gpus: float
    """GPUs used by all replicas."""
    gpu_fraction: float
    """Fraction of each GPU; 1.0 for whole GPUs."""
    nodes_per_replica: int = 1
    stages: tuple[StagePlan, ...]
    routing: str
    """`least-loaded` or `prefix-affinity`."""
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    gpu_memory_utilization: float
    target_ongoing_requests: int
    """Target of autoscaling: requests in flight per replica."""
    max_ongoing_requests: int
    scaling: AutoscalingPlan
    aliases: tuple[str, ...] = ()
    """Further names that clients may send."""
    adapters: dict[str, AdapterPlan] = {}
    """LoRA adapters by the name that clients send."""
    adapter_slots: int = 0
    """Adapters that one batch can use (max_loras)."""
    adapter_rank: int = 0
    """Rank of the slots (max_lora_rank)."""
    adapter_gib: float = 0.0
    """Files of an adapter of this rank with weights for every layer."""
    engine: dict[str, Any] = {}
    """Further engine arguments, chosen or pinned."""
    checkpoint_gib: float | None = None
    """Weights that are downloaded and read, if vLLM quantizes them at load; None if it loads them as they are."""
    kv_cache_tokens: int | None = None
    tight: bool = False
    estimate: Estimate = Estimate()
    price_per_hour: float | None
    """USD for all replicas, with the parts of GPUs that they block; None if the price of the GPU is unknown."""
    blocked_price_per_hour: float = 0.0
    """Part of it for the rest of shared GPUs, which no other service can use."""
    price_per_million_output_tokens: float | None
    """USD at the planned load; None for tasks without output tokens, or without a price or load."""
    pinned: tuple[str, ...] = ()
    """Settings that the fleet file pins."""
    reasons: tuple[Reason, ...]
    warnings: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """Missing figures, and what could not be estimated without them."""

    @property
    def path(self) -> tuple[str, str]:  # in the fleet file
        return ("models", self.written)

    @property
    def shape(self) -> ReplicaShape:
        return ReplicaShape(
            self.tensor_parallel_size,
            self.pipeline_parallel_size,
            self.data_parallel_size,
            self.expert_parallel,
            self.layer_partition or None,
        )

    @property
    def gpus_per_replica(self) -> int:
        """GPUs, or parts of one, that a replica uses."""
        return self.shape.gpu_count

    @property
    def serving_replicas(self) -> int:
        """Replicas that hold requests and send their answers: all of them, or those for decode."""
        return self.prefill_decode.decode.replicas if self.prefill_decode else self.replicas

    @property
    def max_serving_replicas(self) -> int:
        """Largest number of `serving_replicas`."""
        return self.prefill_decode.decode.max_replicas if self.prefill_decode else self.max_replicas

    @property
    def split(self) -> str:
        """Describe the split of a replica: `TP 8 x PP 4`."""
        if not (roles := self.prefill_decode):
            return str(self.shape)
        return f"{self.shape}, {roles.prefill.replicas} prefill + {roles.decode.replicas} decode"


class ServicePlan(Closed):
    """A RayService: its models, the GPUs that it uses, and what an upgrade needs."""

    cluster: str
    namespace: str
    tenant: str | None
    models: tuple[str, ...]
    gpus: int | float
    """GPUs that its pods use at the planned load; fractions for parts of partitioned GPUs."""
    gpu_resources: dict[str, int]
    """The same by extended resource (`nvidia.com/gpu`), as a ResourceQuota counts them."""
    upgrade: str
    """upgradeStrategy of KubeRay: `NewCluster` or `None`."""
    upgrade_surge_gpus: int | float
    """Additional GPUs during an upgrade."""
    upgrade_reason: str
    data_path: DataPath
    data_path_reason: str
    workers: dict[str, WorkerPlan]
    """Pods of each worker group. One without GPUs stays, if the ingress does not run on the workers of the models."""
    claim: ClaimPlan | None = None
    """Volume of the weights; None if nothing is downloaded, or if models name an existing claim."""


class TenantPlan(Closed):
    """A tenant: the models that it may call, and the services that it owns."""

    models: tuple[str, ...]
    """Models that it may call."""
    pinned_versions: dict[str, str]
    """Version that it gets of a model, regardless of the weights."""
    requests_per_minute: int
    """Limit per gateway."""
    tokens_per_minute: int | None
    """Limit per gateway; None: no limit."""
    concurrency: int
    """Concurrent requests; limit per gateway."""
    keys_secret: str
    """Secret with the hashes of its keys, in the namespace of each gateway that it calls."""
    services: tuple[str, ...]
    """Services that it owns."""


class VersionPlan(Closed):
    """One version of a served model, and the models that serve it."""

    weight: int
    """Percent of the requests without a version."""
    models: dict[str, int]
    """Models of the cluster that serve it, each with its weight: 100 for the most estimated tokens per second."""


class RemotePlan(Closed):
    """The gateway of another cluster as one gateway uses it, and the way between both."""

    host: str
    """Empty if it only sends requests to this gateway."""
    port: int
    priority: int
    """The available one with the lowest number gets a request."""
    weights: dict[str, int] = {}
    """Share of the requests to a model among gateways of the same priority; empty without another one."""
    weight_reasons: dict[str, str] = {}
    """Why: `pinned`, or the planned capacity of the other cluster."""
    secret: str
    """Secret with the key that this gateway sends, and the hashes of those that it accepts from the other one."""
    models: dict[str, tuple[str, ...]]
    """Versions that this gateway forwards to it, by served model name."""
    latency_s: float | None
    """Round trip, seconds; None if unknown."""
    price_per_gigabyte: float | None
    """USD per 10^9 bytes; None if unknown."""
    price_per_million_requests: dict[str, float | None] = {}
    """USD for the traffic of a million forwarded requests, by model; None if unknown."""
    unknown: tuple[str, ...] = ()
    """Missing figures, and why."""


class GatewayPlan(Closed):
    """The gateway of a cluster."""

    namespace: str
    url: str
    """URL for clients: the host if there is one, else the name of the Service."""
    models: tuple[str, ...]
    """Served model names that a tenant may call."""
    forwarded: tuple[str, ...] = ()
    """Those of them that only other clusters serve: their versions have no models here."""
    versions: dict[str, dict[str, VersionPlan]]
    """Versions of each, by name."""
    tenants: tuple[str, ...]
    """Tenants that may call a model of this gateway."""
    prefix_caches: dict[str, str] = {}
    """By served model name of several tenants: why they share the prefix cache; empty: each has its own."""
    remotes: dict[str, RemotePlan] = {}
    """Gateways of other clusters, by cluster."""
    spill_above: dict[str, int] = {}
    """Requests in flight per pod from which on further ones are forwarded, by served model name."""


class Plan(Closed):
    """The plan of a fleet. Values of charts are made from it alone."""

    fleet: str
    vllm_version: str
    models: dict[str, ModelPlan]
    services: dict[str, ServicePlan]
    tenants: dict[str, TenantPlan]
    gateways: dict[str, GatewayPlan]
    """By cluster; a cluster without callable models has none."""
    pools: dict[str, PoolUse]
    overrides: tuple[OverridePlan, ...] = ()
    """Values of charts that the fleet file overrides. The planner does not know what they change."""
    warnings: tuple[str, ...] = ()
    resolved: SkipJsonSchema[Annotated[Resolved, Unchecked, Field(exclude=True, repr=False)]]
    """What the plan was made from. Not a part of its JSON."""

    @property
    def declared(self) -> Fleet:
        """What the fleet file states and the plan does not decide: labels, hosts, annotations, images."""
        return self.resolved.fleet

    @property
    def source(self) -> LoadedFleet:
        """What was read: it adds lines to problems, and can be planned again with a change."""
        return self.resolved.source

    @property
    def facts(self) -> Catalog:
        """The catalog with the GPUs of the fleet."""
        return self.resolved.facts

    def find_service_path(self, service: str) -> tuple[str, str]:
        """Return where the fleet file has the settings of a service: those of a further pool are with the first."""
        return ("services", self.declared.service_of(self.of_service(service)[0].written))

    def of_service(self, service: str) -> tuple[ModelPlan, ...]:
        return tuple(self.models_by_service.get(service, ()))

    @cached_property
    def models_by_service(self) -> dict[str, list[ModelPlan]]:
        found: dict[str, list[ModelPlan]] = {}
        for plan in self.models.values():
            found.setdefault(plan.service, []).append(plan)
        return found

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """Warnings of the models, with their names, and of the fleet."""
        return (*(f"{each.model}: {text}" for each in self.models.values() for text in each.warnings), *self.warnings)

    @property
    def price_per_hour(self) -> float | None:
        """USD for all models with a known price; None if no price is known."""
        prices = [plan.price_per_hour for plan in self.models.values() if plan.price_per_hour is not None]
        return sum(prices) if prices else None
