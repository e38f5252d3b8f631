"""The plan: what was decided for every model, and why. Its JSON is a contract (`rayhelm plan --format json`)."""

from rayhelm.catalog.tasks import Task
from rayhelm.closed import Closed

__all__ = [
    "AutoscalingPlan",
    "Estimate",
    "GatewayPlan",
    "ModelPlan",
    "Plan",
    "PoolUse",
    "Reason",
    "ServicePlan",
    "StagePlan",
    "TenantPlan",
    "VersionPlan",
]


class Reason(Closed):
    """Why something was decided so."""

    decision: str
    """Field of the plan that it explains: `tensor_parallel_size`."""
    chosen: str
    because: str
    """A sentence."""
    numbers: dict[str, float | int | str] = {}
    """Figures that the sentence rests on, each with its unit in the key."""


class StagePlan(Closed):
    """One pipeline stage."""

    gpu: str
    host: str = ""
    """Host of the pool, where hosts are unlike."""
    layers: int
    weights_gib: float
    """Per card."""
    kv_gib: float
    """Left for KV cache per card, GiB."""


class Estimate(Closed):
    """What the planned load is expected to see; a range, never a point."""

    ttft_s: float | None = None
    """Time to first token at the planned load, seconds; of a request alone where there is none."""
    tpot_s: float | None = None
    """Time per output token at the planned concurrency, seconds."""
    concurrency: float | None = None
    """Requests in flight per replica at the planned load."""
    tokens_per_second: float | None = None
    """Output tokens per second and replica, at the concurrency that meets the objective."""
    error: str = ""
    """How far off such estimates were on measured rows."""


class AutoscalingPlan(Closed):
    """How Serve's autoscaler is set, beside its bounds and its target."""

    initial_replicas: int
    """Replicas that a new cluster, or an edited model, begins with."""
    load_s: float
    """Seconds until a new replica serves, on a node that is there; an assumption."""
    look_back_s: float
    """Seconds over which requests are averaged."""
    upscale_delay_s: float
    """Seconds of more load before a replica is added."""
    downscale_delay_s: float
    """Seconds of less load before one is given up."""
    downscale_to_zero_delay_s: float | None = None
    """The same for the last one; None where one always stays."""
    policy: str = "ongoing-requests"
    """`ongoing-requests` is Ray's own rule, `engine-queue` rayhelm's."""
    ttft_s: float | None = None
    """Time in which first tokens have to come, for `engine-queue`; None where only queues count."""


class ModelPlan(Closed):
    """One model's place and shape."""

    model: str
    served_as: str
    """Name that clients send: its own, or that of the model which it answers for."""
    version: str
    """Version of that model which it is."""
    service: str
    source: str
    revision: str | None
    architecture: str
    """First of `architectures` in config.json."""
    task: Task
    cluster: str
    pool: str
    hosts: tuple[str, ...] = ()
    """Hosts that hold the stages, in a pool of unlike hosts."""
    gpu: str
    """GPU id; of unlike hosts, joined with `+`."""
    tensor_parallel_size: int
    pipeline_parallel_size: int
    layer_partition: tuple[int, ...] = ()
    """Layers of each stage when vLLM's own split would not do."""
    replicas: int
    """Replicas at the planned load."""
    min_replicas: int
    max_replicas: int
    gpus: float
    """Cards held over all replicas."""
    gpu_fraction: float
    """Share of each card, 1.0 when whole."""
    nodes_per_replica: int = 1
    stages: tuple[StagePlan, ...]
    routing: str
    """`least-loaded` or `prefix-affinity`."""
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    gpu_memory_utilization: float
    target_ongoing_requests: int
    """Requests in flight per replica that autoscaling aims at."""
    max_ongoing_requests: int
    scaling: AutoscalingPlan
    engine: dict[str, bool | int | float | str | None] = {}
    """Further engine arguments, chosen or pinned."""
    kv_cache_tokens: int | None = None
    tight: bool = False
    estimate: Estimate = Estimate()
    price_per_hour: float | None
    """USD for all replicas; None when the price of the card is unknown."""
    price_per_million_output_tokens: float | None
    """USD at the planned load; None for tasks without output tokens, or without a price or load."""
    pinned: tuple[str, ...] = ()
    """What the fleet file fixed."""
    reasons: tuple[Reason, ...]
    warnings: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """Figures that were missing, and what could not be said without them."""


class ServicePlan(Closed):
    """A RayService: what belongs together, and what a change of it takes."""

    cluster: str
    namespace: str
    tenant: str | None
    models: tuple[str, ...]
    gpus: int | float
    """Cards that its pods hold at the planned load, whole ones and parts."""
    gpu_resources: dict[str, int]
    """The same by extended resource (`nvidia.com/gpu`), which is what a quota counts."""
    upgrade: str
    """upgradeStrategy of KubeRay: `NewCluster` or `None`."""
    upgrade_surge_gpus: int | float
    """Cards that an upgrade holds beside those."""
    upgrade_reason: str


class TenantPlan(Closed):
    """A team: what it may call, and what it owns."""

    models: tuple[str, ...]
    """Models that it may call."""
    pinned_versions: dict[str, str]
    """Version that it gets of a model, whatever the weights say."""
    requests_per_minute: int
    """Bound of each gateway."""
    concurrency: int
    """Requests at the same time; bound of each gateway."""
    keys_secret: str
    """Secret with the hashes of its keys, in the namespace of each gateway that it calls."""
    services: tuple[str, ...]
    """Services that it owns."""


class VersionPlan(Closed):
    """One version of a model, and who answers for it."""

    weight: int
    """Percent of the requests that name no version."""
    models: dict[str, int]
    """Entries of the fleet file that hold it, each with its share against the others: 100 for the one that is estimated
    to answer the most tokens per second, and for all where that is not known."""


class GatewayPlan(Closed):
    """The door of a cluster."""

    namespace: str
    url: str
    """Where clients call it: at its host from outside, by its Service's name otherwise."""
    models: tuple[str, ...]
    """Models behind it that somebody may call, by the names that clients send."""
    versions: dict[str, dict[str, VersionPlan]]
    """Versions of each, by name."""
    tenants: tuple[str, ...]
    """Who may call something behind it."""


class PoolUse(Closed):
    """How much of a pool the plan holds."""

    cluster: str
    gpu: str
    gpus: int
    used: float
    network: str
    sharing: str = ""
    """What its cards are cut into, in words."""
    mig: dict[str, int] = {}
    """MIG instances of each card, by profile."""
    time_slices: int = 0
    """Time slices of each card; 0 where it is whole, or cut by MIG."""
    gpu_resources: dict[str, int]
    """What its nodes offer, by extended resource (`nvidia.com/mig-3g.40gb`)."""


class Plan(Closed):
    """The plan of a fleet."""

    fleet: str
    vllm_version: str
    models: dict[str, ModelPlan]
    services: dict[str, ServicePlan]
    tenants: dict[str, TenantPlan]
    gateways: dict[str, GatewayPlan]
    """By cluster; one where nobody may call anything has none."""
    pools: dict[str, PoolUse]
    warnings: tuple[str, ...] = ()

    def of_service(self, service: str) -> tuple[ModelPlan, ...]:
        return tuple(plan for plan in self.models.values() if plan.service == service)

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """Those of the models, by name, and those of the whole plan."""
        told = (f"{model.model}: {text}" for model in self.models.values() for text in model.warnings)
        return (*told, *self.warnings)

    @property
    def price_per_hour(self) -> float | None:
        """USD for everything whose price is known; None when nothing's is."""
        prices = [plan.price_per_hour for plan in self.models.values() if plan.price_per_hour is not None]
        return sum(prices) if prices else None
