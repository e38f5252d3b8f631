"""What is served: applications, their models, and how each scales. Edits of these are made in place, without new pods;
edits of the proxy's port and time-outs are not."""

from typing import Annotated, Any, Literal

from pydantic import Field

from rayhelm.catalog.tasks import VllmTask
from rayhelm.values.common.base import Env, Name, Port, Values
from rayhelm.values.ray_service.accelerators import AcceleratorType
from rayhelm.values.ray_service.engine import Engine

__all__ = [
    "AutoscalingPolicy",
    "CustomApplication",
    "Logging",
    "ModelAutoscaling",
    "Router",
    "Serve",
    "ServeApplication",
    "ServedModel",
]

Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(ge=0)]
ModelId = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$", max_length=96)]
HubId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9._-]+$")]
Revision = Annotated[str, Field(pattern=r"^([0-9a-f]{40})?$")]
Route = Annotated[str, Field(pattern=r"^/([A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*)?$")]
ResourceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]+$")]


class AutoscalingPolicy(Values):
    """Who decides on the number of replicas."""

    kind: Literal["OngoingRequests", "EngineQueue"] = "OngoingRequests"
    """`OngoingRequests` is Ray's own rule. `EngineQueue` is rayhelm's: it corrects the target with the metrics that the
    engines report to Prometheus, and uses Ray's rule when Prometheus does not answer. It needs `serve.prometheus.url`
    and `image.includesRayhelm`. An edit applies in place."""
    ttft_seconds: Seconds = 0
    """Time in which first tokens have to come, for `EngineQueue`; with 0 only the queue of the engines counts."""
    ttft_objective: Annotated[float, Field(gt=0, lt=1)] = 0.95
    """Share of requests whose first token has to come in time."""
    max_waiting_requests: Annotated[float, Field(gt=0)] = 2
    """Requests that may wait in the engine of one replica before its target is lowered."""
    window_seconds: Annotated[int, Field(ge=60)] = 120
    """Seconds over which first tokens are counted; at least four scrapes."""


class ModelAutoscaling(Values):
    """How Serve scales the replicas of a model."""

    min_replicas: Annotated[int, Field(ge=0)] = 1
    """Replicas that always run; 0 makes the first request wait for a load of the model."""
    max_replicas: Count = 1
    """Most replicas; the worker groups have to hold them."""
    initial_replicas: Annotated[int, Field(ge=0)] | None = None
    """Replicas that a new cluster begins with, and is ready with: not before all of them serve. `minReplicas` when left
    out. Serve begins with it anew after each edit of the model, whatever runs."""
    target_ongoing_requests: Annotated[float, Field(gt=0)]
    """Requests per replica that the autoscaler aims at. Required: Serve LLM's own default of 1e9 never scales."""
    upscale_delay_seconds: Seconds = 30
    """Seconds of more load before a replica is added: a small part of the time in which a replica loads."""
    downscale_delay_seconds: Seconds = 600
    """Seconds of less load before a replica is ended: a multiple of the time in which a replica loads."""
    downscale_to_zero_delay_seconds: Seconds | None = None
    """The same for the last replica, where `minReplicas` is 0; `downscaleDelaySeconds` when left out."""
    look_back_period_seconds: Annotated[float, Field(gt=0)] = 30
    """Seconds over which the load is averaged; replicas report every 10."""
    policy: AutoscalingPolicy = AutoscalingPolicy()
    """Who decides."""


class Router(Values):
    """Which replica gets a request."""

    kind: Literal["PowerOfTwo", "PrefixAffinity"] = "PowerOfTwo"
    """`PrefixAffinity` sends common beginnings to the replica that has them cached. Only for `chat`: requests without
    `messages` or `prompt` would hang in it."""
    imbalance_threshold: Count = 10
    """Requests by which queues may differ before affinity yields to the shorter one."""
    match_rate_threshold: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Share of the prompt that must match before affinity counts."""


class Accelerator(Values):
    """What the engine computes on."""

    kind: Literal["gpu", "cpu"] = "gpu"
    """`cpu` serves small models without a card, and stand-ins for large ones."""


class HealthCheck(Values):
    """How Serve finds a dead engine; a replica that fails is started again."""

    period_seconds: Annotated[float, Field(gt=0)] = 10
    """Seconds between checks."""
    timeout_seconds: Annotated[float, Field(gt=0)] = 30
    """Seconds before a check counts as failed."""


class ServedModel(Values):
    """One model, served under its key: that is the `model` which clients name."""

    source: str
    """Hub id (`org/name`), absolute path in the container, or `s3://` / `gs://` URL."""
    revision: Revision = ""
    """Commit of the hub repository, 40 hex digits. Without it the weights change under you; NOTES says so."""
    tokenizer: str | None = None
    """Tokenizer, where it is not beside the weights: a hub id, which the download Job fetches too, or a path."""
    tokenizer_revision: Revision = ""
    """Commit of the tokenizer's hub repository."""
    task: VllmTask = "chat"
    """What it does; decides the runner, the routers that are allowed, and the request of `helm test`."""
    engine: Engine
    """vLLM's arguments."""
    accelerator: Accelerator = Accelerator()
    """What the engine computes on."""
    accelerator_type: AcceleratorType | None = None
    """Card as Ray names it, where the worker group does not say enough. A group at `minReplicas: 0` is never
    started for it."""
    worker_groups: list[Name] = []
    """Group for all stages, or one for each pipeline stage. Empty: wherever GPUs are free. vLLM orders the stages
    itself: those on the engine's node first, then by Ray's node id, which is random. So a model over unlike groups has
    to fit in every order."""
    resources: dict[ResourceName, Annotated[float, Field(gt=0)]] = {}
    """Further Ray resources of each bundle, which a worker group offers in its `rayResources`."""
    gpu_fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of each card that Ray books. Below 1 the engine is told too; `gpuMemoryUtilization` has to fit in it."""
    placement_strategy: Literal["PACK", "STRICT_PACK", "SPREAD", "STRICT_SPREAD"] = "PACK"
    """How the bundles spread over nodes; `STRICT_PACK` keeps one replica on one node."""
    replica_cpus: Annotated[float, Field(ge=0)] = 1
    """CPUs that Ray books for the replica beside its GPUs."""
    autoscaling: ModelAutoscaling
    """How many replicas."""
    max_ongoing_requests: Count | None = None
    """Requests that a replica takes before Serve queues; about 1.5 x `targetOngoingRequests`, which is the default."""
    max_queued_requests: Annotated[int, Field(ge=-1)] = -1
    """Requests that may wait before clients get 503; -1 for no bound."""
    router: Router = Router()
    """Which replica gets a request."""
    health_check: HealthCheck = HealthCheck()
    """How a dead engine is found."""
    graceful_shutdown_seconds: Seconds = 120
    """Seconds that a replica may take to finish its requests."""
    trust_remote_code_reason: str = ""
    """Why code out of the model's repository may run; required with `engine.trustRemoteCode`."""
    env: Env = {}
    """Environment of this model's processes."""


class IngressDeployment(Values):
    """The HTTP deployment of an application, which parses requests and calls the models."""

    min_replicas: Count = 1
    """Replicas that always run; each books one CPU."""
    max_replicas: Count = 2
    """Most replicas."""
    target_ongoing_requests: Annotated[float, Field(gt=0)] = 200
    """Requests per replica that the autoscaler aims at; Serve LLM's own default of 1e9 never scales."""


class ServeApplication(Values):
    """Models behind one route, with an OpenAI-compatible API at `<routePrefix>/v1`."""

    route_prefix: Route | None = None
    """Path under which it answers; `/<application>` when left out."""
    models: Annotated[dict[ModelId, ServedModel], Field(min_length=1)]
    """The models, by the id that clients name."""
    ingress: IngressDeployment = IngressDeployment()
    """The HTTP deployment in front of the models."""


class CustomDeployment(Values):
    """Options of one deployment of a custom application."""

    min_replicas: Annotated[int, Field(ge=0)] = 1
    """Replicas that always run."""
    max_replicas: Count = 1
    """Most replicas."""
    target_ongoing_requests: Annotated[float, Field(gt=0)] = 2
    """Requests per replica that the autoscaler aims at."""
    initial_replicas: Annotated[int, Field(ge=0)] | None = None
    """Replicas that a new cluster, or an edit, begins with; `minReplicas` when left out."""
    upscale_delay_seconds: Seconds = 30
    """Seconds of more load before a replica is added."""
    downscale_delay_seconds: Seconds = 600
    """Seconds of less load before a replica is ended."""
    downscale_to_zero_delay_seconds: Seconds | None = None
    """The same for the last replica; `downscaleDelaySeconds` when left out."""
    look_back_period_seconds: Annotated[float, Field(gt=0)] = 30
    """Seconds over which the load is averaged; replicas report every 10."""
    max_ongoing_requests: Count = 5
    """Requests that a replica takes before Serve queues."""
    cpus: Annotated[float, Field(ge=0)] = 1
    """CPUs of a replica."""
    gpus: Annotated[float, Field(ge=0)] = 0
    """GPUs of a replica, or the share of one."""
    worker_group: Name | Literal[""] = ""
    """Group that it runs on; empty for any."""
    graceful_shutdown_seconds: Seconds = 20
    """Seconds that a replica may take to finish its requests."""
    user_config: dict[str, Any] = {}
    """Handed to the deployment's `reconfigure`."""


class CustomApplication(Values):
    """A Serve application of your own: text to speech, for one. Its module has to be in the image."""

    route_prefix: Route | None = None
    """Path under which it answers; `/<application>` when left out."""
    import_path: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
    """`module:application` or `module:builder`."""
    args: dict[str, Any] = {}
    """Arguments of the builder."""
    hub_models: dict[HubId, Revision] = {}
    """Hub models that it reads, and the commit of each. The download Job puts them at
    `<weights.mountPath>/<id>/<commit, or main>`, which is what `args` should name: servers are offline."""
    env: Env = {}
    """Environment of its processes."""
    deployments: dict[str, CustomDeployment] = {}
    """Options by deployment name; they override what the code says."""


class Logging(Values):
    """Serve's own logs."""

    encoding: Literal["JSON", "TEXT"] = "JSON"
    """Form of a line."""
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """Least severity."""
    access_log: bool = False
    """A line for each request."""


class PrometheusSource(Values):
    """The Prometheus that has the series of this release (`podMonitor`)."""

    url: Annotated[str, Field(pattern=r"^(https?://[^\s/]+(/\S*)?)?$")] = ""
    """Where the policy `EngineQueue` asks it (`http://prometheus.monitoring:9090`); empty where nobody does."""


class Serve(Values):
    """Ray Serve: its HTTP proxy and its applications."""

    port: Port = 8000
    """HTTP port of every proxy, and of the Service. An edit builds a new cluster."""
    request_timeout_seconds: Annotated[float, Field(gt=0)] = 1200
    """Seconds after which a request ends, with 408 from Serve LLM's ingress (600 of its own) or from the proxy (never).
    The ingress reads it from the pods' environment, so an edit builds a new cluster."""
    keep_alive_timeout_seconds: Annotated[int, Field(gt=0)] = 90
    """Seconds that an idle connection stays open; more than the gateway's, or it meets closed ones. Ray keeps
    the HTTP options that a cluster started with: an edit reaches only the next one."""
    logging: Logging = Logging()
    """Serve's own logs."""
    prometheus: PrometheusSource = PrometheusSource()
    """What autoscaling may ask."""
    applications: dict[Name, ServeApplication] = {}
    """Applications of Ray Serve LLM, by name; edits are made in place."""
    custom_applications: dict[Name, CustomApplication] = {}
    """Applications of your own, by name; edits are made in place."""
