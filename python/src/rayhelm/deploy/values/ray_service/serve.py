"""Ray Serve: applications, models and their autoscaling. Edits of these apply in place, without new pods; edits of the
proxy's port and timeouts start a new cluster."""

from typing import Annotated, Any, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Env, Name, Port, Values, WebUrl
from rayhelm.deploy.values.ray_service.accelerators import AcceleratorType
from rayhelm.deploy.values.ray_service.adapters import AdapterName, Lora
from rayhelm.deploy.values.ray_service.engine import Engine
from rayhelm.facts.tasks import VllmTask

__all__ = [
    "AutoscalingPolicy",
    "CustomApplication",
    "Logging",
    "ModelAutoscaling",
    "Prefill",
    "ProxyTls",
    "Router",
    "Serve",
    "ServeApplication",
    "ServedModel",
]

Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(ge=0)]
ModelId = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$", max_length=96)]
Downloaded = Annotated[
    str,
    Field(
        pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9._-]+"
        r"|((s3|gs)://[a-z0-9][a-z0-9._-]+|(azure|abfss)://[a-z0-9-]+@[a-z0-9][a-z0-9.-]+)(/[A-Za-z0-9_][\w.=-]*)*)$"
    ),
]
Revision = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})?$")]
Route = Annotated[str, Field(pattern=r"^/([A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*)?$")]
ResourceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]+$")]


class AutoscalingPolicy(Values):
    """Autoscaling policy: what decides the number of replicas."""

    kind: Literal["OngoingRequests", "EngineQueue"] = "OngoingRequests"
    """`OngoingRequests` is Ray's own rule. `EngineQueue` is rayhelm's: it corrects the target with the metrics that the
    engines report to Prometheus, and uses Ray's rule when Prometheus does not answer. It needs `serve.prometheus.url`
    and `image.includesRayhelm`. An edit applies in place."""
    ttft_seconds: Seconds = 0
    """Limit for the time to first token, for `EngineQueue`. With 0 only the queue of the engines counts."""
    ttft_objective: Annotated[float, Field(gt=0, lt=1)] = 0.95
    """Share of requests whose first token must arrive within `ttftSeconds`."""
    max_waiting_requests: Annotated[float, Field(gt=0)] = 2
    """Waiting requests in the engine of one replica above which the policy lowers its target."""
    window_seconds: Annotated[int, Field(ge=60)] = 120
    """Seconds over which the policy counts first tokens. At least four scrape intervals."""


class ModelAutoscaling(Values):
    """Autoscaling of the replicas of a model."""

    min_replicas: Annotated[int, Field(ge=0)] = 1
    """Minimum number of replicas. With 0 the first request waits until the model is loaded."""
    max_replicas: Count = 1
    """Maximum number of replicas. The worker groups must have room for them."""
    initial_replicas: Annotated[int, Field(ge=0)] | None = None
    """Replicas that a new cluster starts with; it becomes ready when all of them serve. `minReplicas` when absent.
    Serve starts with this number again after each edit of the model."""
    target_ongoing_requests: Annotated[float, Field(gt=0)]
    """Requests per replica that the autoscaler aims at. Required, because Ray Serve LLM's default of 1e9 never
    scales."""
    upscale_delay_seconds: Seconds = 30
    """Seconds of higher load before Serve adds a replica. Use a small part of the load time of the model."""
    downscale_delay_seconds: Seconds = 600
    """Seconds of lower load before Serve removes a replica. Use a multiple of the load time of the model."""
    downscale_to_zero_delay_seconds: Seconds | None = None
    """The same for the last replica, when `minReplicas` is 0. `downscaleDelaySeconds` when absent."""
    look_back_period_seconds: Annotated[float, Field(gt=0)] = 30
    """Seconds over which Serve averages the load. Above 10, because replicas report every 10 s."""
    policy: AutoscalingPolicy = AutoscalingPolicy()
    """Autoscaling policy."""


class Router(Values):
    """Routing of requests to replicas."""

    kind: Literal["PowerOfTwo", "PrefixAffinity"] = "PowerOfTwo"
    """`PrefixAffinity` sends requests with a shared prefix to the replica that has the prefix cached. Only for task
    `chat`: requests without `messages` or `prompt` would hang in it. With `serve.dataPath: Direct` it needs
    `image.includesRayhelm`; `PowerOfTwo` looks at the load of replicas there only with it."""
    imbalance_threshold: Count = 10
    """Difference in queue length above which the shortest queue wins over prefix affinity."""
    match_rate_threshold: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Share of the prompt that must match for prefix affinity to apply."""


class Accelerator(Values):
    """Hardware of the engine."""

    kind: Literal["gpu", "cpu"] = "gpu"
    """`cpu` serves small models without a GPU."""


class Prefill(Values):
    """Replicas that compute prompts. Those of the model then compute answers, with the KV cache that these send."""

    autoscaling: ModelAutoscaling
    """Autoscaling of the replicas."""
    max_ongoing_requests: Count | None = None
    """Requests that a replica processes before Serve queues more. 1.5 times `targetOngoingRequests` when absent."""
    connector: Literal["NixlConnector", "LMCacheConnectorV1"] = "NixlConnector"
    """Class of vLLM that moves the KV cache. The image has to contain its package: `nixl` or `lmcache`. Ray's images
    `rayproject/ray-llm` have `nixl`."""
    connector_options: dict[str, Any] = {}
    """Its `kv_connector_extra_config`, the same for both kinds of replicas."""


class HealthCheck(Values):
    """Health check of the engine. Serve restarts a replica that fails it."""

    period_seconds: Annotated[float, Field(gt=0)] = 10
    """Seconds between checks."""
    timeout_seconds: Annotated[float, Field(gt=0)] = 30
    """Seconds until a check fails."""


class ServedModel(Values):
    """One model. Its key is the `model` that clients name in requests."""

    source: str
    """Hub id (`org/name`), absolute path in the container (`/model-images/<name>` for `weights.images`), or `s3://`,
    `gs://`, `azure://` or `abfss://` URL: with a `revision` the Job downloads it, without one each server by
    itself."""
    revision: Revision = ""
    """Commit of the hub repository, 40 hex digits, or sha256 of the file `SHA256SUMS` below the URL of a
    bucket, 64 hex digits. Without it, the weights can change at the next download."""
    tokenizer: str | None = None
    """Tokenizer, if the model repository has none: a hub id, which the download Job downloads too, or a path."""
    tokenizer_revision: Revision = ""
    """Commit of the tokenizer's hub repository."""
    task: VllmTask = "chat"
    """Task of the model. It sets vLLM's runner, the allowed routers and the request of `helm test`."""
    engine: Engine
    """Engine arguments of vLLM."""
    lora: Lora = Lora()
    """LoRA adapters, for the task `chat`."""
    aliases: list[AdapterName] = []
    """Further names that requests may have in `model`. The ingress replaces them by the name of the model, which
    responses have. They need `image.includesRayhelm`."""
    accelerator: Accelerator = Accelerator()
    """Hardware of the engine."""
    accelerator_type: AcceleratorType | None = None
    """GPU type by Ray's name, if `workerGroups` does not select it. Ray's autoscaler does not start a group with
    `minReplicas: 0` for it."""
    worker_groups: list[Name] = []
    """Worker group for all pipeline stages, or one for each stage. Any group with free GPUs when empty. vLLM orders the
    stages itself: the engine's node first, then by Ray's node id, which is random. So a model on different groups must
    fit in every order."""
    resources: dict[ResourceName, Annotated[float, Field(gt=0)]] = {}
    """Custom Ray resources of each bundle, which a worker group offers in `rayResources`."""
    gpu_fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of each GPU that Ray reserves. `engine.gpuMemoryUtilization` must not be above 0.92 of it."""
    placement_strategy: Literal["PACK", "STRICT_PACK", "SPREAD", "STRICT_SPREAD"] = "PACK"
    """Placement group strategy of Ray. `STRICT_PACK` keeps a replica on one node."""
    replica_cpus: Annotated[float, Field(ge=0)] = 1
    """CPUs that Ray reserves for the replica in addition to its GPUs."""
    autoscaling: ModelAutoscaling
    """Autoscaling of the replicas."""
    max_ongoing_requests: Count | None = None
    """Requests that a replica processes before Serve queues more. 1.5 times `targetOngoingRequests` when absent."""
    max_queued_requests: Annotated[int, Field(ge=-1)] = -1
    """Requests in the queue above which clients get 503; -1 for no limit."""
    prefill: Prefill | None = None
    """Compute prompts on replicas of their own, with the same engine arguments. The application then has this model
    alone, and `build_pd_openai_app` of Ray Serve LLM builds it: `autoscaling` and `maxOngoingRequests` of the model are
    those of the replicas that compute answers, and `router` chooses among those that compute prompts."""
    router: Router = Router()
    """Routing of requests to replicas."""
    health_check: HealthCheck = HealthCheck()
    """Health check of the engine."""
    graceful_shutdown_seconds: Seconds = 120
    """Seconds that a replica gets to finish its requests when it stops."""
    trust_remote_code_reason: str = ""
    """Reason why code from the model's repository may run. Required with `engine.trustRemoteCode`."""
    env: Env = {}
    """Environment variables of the model's processes."""


class IngressDeployment(Values):
    """HTTP deployment of an application, which parses requests and calls the models."""

    min_replicas: Count = 1
    """Minimum number of replicas. Each reserves one CPU."""
    max_replicas: Count = 2
    """Maximum number of replicas."""
    worker_group: Name | Literal[""] = ""
    """Worker group; any when empty. The ingress always has a replica, which keeps its pod: with models that scale to
    zero it needs a group without GPUs."""
    target_ongoing_requests: Annotated[float, Field(gt=0)] = 200
    """Requests per replica that the autoscaler aims at. Ray Serve LLM's default of 1e9 never scales."""


class ServeApplication(Values):
    """Models behind one route, with an OpenAI-compatible API at `<routePrefix>/v1`."""

    route_prefix: Route | None = None
    """URL path of the application. `/<application>` when absent."""
    models: Annotated[dict[ModelId, ServedModel], Field(min_length=1)]
    """Models by the id that clients use."""
    ingress: IngressDeployment = IngressDeployment()
    """HTTP deployment in front of the models."""


class CustomDeployment(Values):
    """Options of one deployment of a custom application."""

    min_replicas: Annotated[int, Field(ge=0)] = 1
    """Minimum number of replicas."""
    max_replicas: Count = 1
    """Maximum number of replicas."""
    target_ongoing_requests: Annotated[float, Field(gt=0)] = 2
    """Requests per replica that the autoscaler aims at."""
    initial_replicas: Annotated[int, Field(ge=0)] | None = None
    """Replicas that a new cluster or an edit starts with. `minReplicas` when absent."""
    upscale_delay_seconds: Seconds = 30
    """Seconds of higher load before Serve adds a replica."""
    downscale_delay_seconds: Seconds = 600
    """Seconds of lower load before Serve removes a replica."""
    downscale_to_zero_delay_seconds: Seconds | None = None
    """The same for the last replica. `downscaleDelaySeconds` when absent."""
    look_back_period_seconds: Annotated[float, Field(gt=0)] = 30
    """Seconds over which Serve averages the load. Above 10, because replicas report every 10 s."""
    max_ongoing_requests: Count = 5
    """Requests that a replica processes before Serve queues more."""
    cpus: Annotated[float, Field(ge=0)] = 1
    """CPUs of a replica."""
    gpus: Annotated[float, Field(ge=0)] = 0
    """GPUs of a replica, or a share of one GPU."""
    worker_group: Name | Literal[""] = ""
    """Worker group; any when empty."""
    graceful_shutdown_seconds: Seconds = 20
    """Seconds that a replica gets to finish its requests when it stops."""
    user_config: dict[str, Any] = {}
    """Argument of the deployment's `reconfigure`."""


class CustomApplication(Values):
    """Your own Ray Serve application, for example text to speech. Its module must be in the image."""

    route_prefix: Route | None = None
    """URL path of the application. `/<application>` when absent."""
    import_path: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
    """`module:application` or `module:builder`."""
    args: dict[str, Any] = {}
    """Arguments of the builder."""
    hub_models: dict[Downloaded, Revision] = {}
    """Hub models that it reads, each with its commit, and URLs of buckets, each with the sha256 of its
    `SHA256SUMS`. The download Job writes them to `<weights.mountPath>/<id>/<commit, or main>` and
    `<weights.mountPath>/<s3, gs, azure or abfss>/<bucket>/<prefix>/<sha256>`; use that path in `args`, because servers
    do not contact the hub."""
    env: Env = {}
    """Environment variables of its processes."""
    deployments: dict[str, CustomDeployment] = {}
    """Options by deployment name. They override the ones in the code."""


class Logging(Values):
    """Logs of Ray Serve."""

    encoding: Literal["JSON", "TEXT"] = "JSON"
    """Format of a log line."""
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """Lowest level that is logged."""
    access_log: bool = False
    """Log each request: its id, and with rayhelm in the image its tenant and tokens; never its text."""


class PrometheusSource(Values):
    """Prometheus with the metrics of this release (`scraping`)."""

    url: WebUrl = ""
    """URL that the policy `EngineQueue` queries, for example `http://prometheus.monitoring:9090`. Empty if no model
    uses it."""


class ProxyTls(Values):
    """TLS of the Serve port. All clients have to use it then: `upstreamTls` and `endpoints.*.tls` of the chart
    `gateway`, and the clients of `aliases`."""

    secret_name: Annotated[str, Field(pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$", max_length=253)] = ""
    """TLS Secret (`tls.crt` and `tls.key`) with a certificate for `<name>-serve-svc.<namespace>.svc.<clusterDomain>`;
    empty: no TLS. An edit starts a new cluster. Ray reads the certificate when a pod starts, so a renewed one takes
    effect in new pods only. Ray does not verify certificates of clients."""


class Serve(Values):
    """Ray Serve: HTTP proxy and applications."""

    port: Port = 8000
    """HTTP port of the proxies and of the Service. An edit starts a new cluster."""
    data_path: Literal["Python", "HAProxy", "Direct"] = "Python"
    """Way of a request inside the Ray cluster. `Python`: a proxy on each node, which calls the `ingress` deployment of
    the application, which calls a replica. `HAProxy`: Ray starts HAProxy on each node in place of that proxy. `Direct`:
    HAProxy sends the request to the replica itself, which has the routes of vLLM: less CPU for each streamed token, for
    applications with one model without `aliases`. Then there is no `ingress` deployment. The last two have no TLS, and
    take Ray 2.60.0 (its package `ray[serve]` brings HAProxy). An edit starts a new cluster."""
    request_timeout_seconds: Annotated[float, Field(gt=0)] = 1200
    """Seconds after which a request ends with 408. Without it, Ray Serve LLM's ingress ends requests after 600 s and
    the proxy never. The ingress reads it from the environment of the pods, so an edit starts a new cluster."""
    keep_alive_timeout_seconds: Annotated[int, Field(gt=0)] = 90
    """Seconds that an idle connection stays open. Keep it above the gateway's value, or the gateway uses closed
    connections. An edit takes effect only with the next cluster."""
    tls: ProxyTls = ProxyTls()
    """TLS of the Serve port."""
    logging: Logging = Logging()
    """Logs of Ray Serve."""
    prometheus: PrometheusSource = PrometheusSource()
    """Prometheus for autoscaling."""
    applications: dict[Name, ServeApplication] = {}
    """Applications of Ray Serve LLM by name. Edits apply in place."""
    custom_applications: dict[Name, CustomApplication] = {}
    """Your own applications by name. Edits apply in place."""
