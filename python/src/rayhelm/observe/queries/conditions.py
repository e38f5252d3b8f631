"""Conditions of alerts that no other module has: what a rule compares with a limit, or with what ought to be."""

from rayhelm.observe.queries import blocks, gateway, kubernetes
from rayhelm.observe.queries.labels import (
    CLUSTER,
    DEPLOYMENT,
    GATEWAY,
    GATEWAY_LABEL,
    MODEL,
    NAMESPACE,
    SERVICE,
    SERVICE_LABEL,
    TENANT,
    VERSION,
    By,
)
from rayhelm.observe.queries.registry import query
from rayhelm.observe.queries.scope import Scope

__all__ = [
    "down_targets",
    "engine_deaths",
    "excess_reports",
    "failed_downloads",
    "finished_requests",
    "forwarded_share",
    "free_gpus",
    "full_gateways",
    "gateway_repeats",
    "ignored_maps",
    "key_age",
    "limited_share",
    "lost_certificate_lifetime",
    "outdated_certificate",
    "processed_tokens",
    "ready_gateway_pods",
    "ready_operators",
    "redis_without_pods",
    "scaled_to_zero",
    "scraped_gateways",
    "scraped_services",
    "target_of_old_deployments",
    "tenants_without_keys",
    "token_key_age",
    "used_object_quota",
    "waiting_for_config",
    "was_ready",
]

RAY_SERVICE: By = (*NAMESPACE, "name")
TARGET = "ray_serve_autoscaling_target_replicas"
JOBS = "-weights-[0-9a-f]{7}"
"""End of the name of a Job that downloads weights."""


@query(unit="replicas", idle="value")
def target_of_old_deployments(scope: Scope, window: str = "20m", by: By = DEPLOYMENT) -> str:
    """The least number of replicas that Serve wanted in the window. No data for a deployment that is younger, or that
    was scaled to zero when the window began."""
    least = blocks.gauge(TARGET, scope, by=by, over="min_over_time", window=window)
    before = blocks.aggregate("sum", f"{blocks.vector(TARGET, scope)} offset {window}", by)
    return f"({least} and {before} > 0)"


@query(unit="count", idle="no data", first=True)
def engine_deaths(scope: Scope, window: str = "10m", by: By = (*SERVICE, "application")) -> str:
    """Requests in the window that failed because the engine of their replica was dead."""
    name = "ray_serve_deployment_error_counter_total"
    return blocks.increase(name, scope, window, 'exception_type="EngineDeadError"', by=by, zero=False)


@query(unit="tokens", idle="value", first=True)
def processed_tokens(scope: Scope, window: str = "5m", by: By = DEPLOYMENT) -> str:
    """Prompt and output tokens in the window. No data for a deployment without an engine of vLLM: another deployment of
    the service may be busy without tokens."""
    prompt, output = (
        blocks.increase(f"ray_vllm_{name}_tokens_total", scope, window, by=by, zero=False)
        for name in ("prompt", "generation")
    )
    # Engines for embeddings and reranking have no counter of output tokens.
    return f"({prompt}) + ({output} or 0 * ({prompt}))"


@query(unit="requests", idle="no data", first=True)
def finished_requests(scope: Scope, window: str = "10m", by: By = MODEL) -> str:
    """Requests in the window that the engines finished."""
    return blocks.increase("ray_vllm_request_success_total", scope, window, by=by, zero=False)


@query(unit="gpus", idle="value")
def free_gpus(scope: Scope, by: By = SERVICE) -> str:
    """GPUs that the pods of a service have and no replica uses."""
    return blocks.gauge("ray_resources", scope, 'Name="GPU"', 'State="AVAILABLE"', by=by)


@query(unit="state", idle="value")
def was_ready(scope: Scope, window: str = "1d", by: By = RAY_SERVICE) -> str:
    """1 for each RayService that had endpoints in the window."""
    name = "kuberay_service_condition_ready"
    ready = blocks.vector(name, scope, 'condition="true"', over="max_over_time", window=window)
    return blocks.aggregate("max", ready, by)


@query(unit="replicas", idle="value")
def scaled_to_zero(scope: Scope) -> str:
    """RayServices whose deployments want no replica. They have no endpoint, because the head is not one. Deployments
    without a GPU (`OpenAiIngress`) do not count."""
    target = blocks.gauge(TARGET, scope, 'deployment!="OpenAiIngress"', by=SERVICE)
    return f'label_replace({target} == 0, "name", "$1", "{SERVICE_LABEL}", "(.+)")'


@query(unit="state", idle="value")
def failed_downloads(scope: Scope, by: By = (*NAMESPACE, "job_name")) -> str:
    """Jobs that download weights and failed, or whose container fails again and again."""
    failed = blocks.gauge("kube_job_failed", scope, f'job_name=~".+{JOBS}"', 'condition="true"', by=by, operator="max")
    name, matchers = (
        "kube_pod_init_container_status_waiting_reason",
        ('reason="CrashLoopBackOff"', f'pod=~".+{JOBS}-.+"'),
    )
    waiting = blocks.gauge(name, scope, *matchers, by=(*NAMESPACE, "pod"), operator="max")
    of_job = f'label_replace({waiting}, "job_name", "$1", "pod", "(.+)-[^-]+")'
    return f"({failed} == 1 or {blocks.aggregate('max', of_job, by)})"


@query(unit="state", idle="no data")
def waiting_for_config(scope: Scope, by: By = (*NAMESPACE, "pod", "container")) -> str:
    """Containers that cannot start because a Secret or ConfigMap, or a key of one, does not exist."""
    names = ("kube_pod_container_status_waiting_reason", "kube_pod_init_container_status_waiting_reason")
    reason = 'reason="CreateContainerConfigError"'
    found = (blocks.gauge(name, scope, reason, by=by, operator="max") for name in names)
    return f"({' or '.join(found)}) == 1"


@query(unit="state", idle="value")
def tenants_without_keys(scope: Scope) -> str:
    """Tenants whose Secret with key hashes does not exist. No data if kube-state-metrics lists no Secrets."""
    secrets = kubernetes.secret_exists(scope, (*NAMESPACE, "secret"))
    on = "on (cluster, namespace, secret)"
    listed = f"{blocks.aggregate('count', secrets, CLUSTER)} > 0"
    return f"{blocks.vector('rayhelm:gateway_keys_secret', scope)} unless {on} {secrets} and on (cluster) ({listed})"


@query(unit="count", idle="value")
def ready_gateway_pods(scope: Scope) -> str:
    """Available pods of each gateway. A pod that has read no valid key is not available."""
    pods = blocks.gauge("kube_deployment_status_replicas_available", scope, by=(*NAMESPACE, "deployment"))
    named = f'label_replace({pods}, "{GATEWAY_LABEL}", "$1", "deployment", "(.+)")'
    return f"{named} and on (cluster, namespace, {GATEWAY_LABEL}) {blocks.vector('rayhelm:gateway_info', scope)}"


@query(unit="replicas", idle="no data")
def full_gateways(scope: Scope) -> str:
    """Pods of each gateway whose autoscaler is at its maximum, if it may have fewer. KEDA puts `keda-hpa-` in front of
    the name of its autoscaler."""
    scaler = (*NAMESPACE, "horizontalpodautoscaler")
    pods, least, most = (
        blocks.gauge(f"kube_horizontalpodautoscaler_{name}_replicas", scope, by=scaler)
        for name in ("status_current", "spec_min", "spec_max")
    )
    full = f"{pods} >= {most} and {most} > {least}"
    named = f'label_replace({full}, "{GATEWAY_LABEL}", "$1", "horizontalpodautoscaler", "(?:keda-hpa-)?(.+)")'
    return f"{named} and on (cluster, namespace, {GATEWAY_LABEL}) {blocks.vector('rayhelm:gateway_info', scope)}"


@query(unit="count", idle="value")
def ready_operators(scope: Scope, by: By = (*NAMESPACE, "deployment")) -> str:
    """Available pods of each KubeRay operator."""
    named = 'deployment=~"(.+-)?kuberay-operator"'
    return blocks.gauge("kube_deployment_status_replicas_available", scope, named, by=by)


@query(unit="state", idle="no data")
def redis_without_pods(scope: Scope) -> str:
    """Namespaces of the Redis that keeps the state of Ray heads in which no pod is ready. No data if kube-state-metrics
    is not scraped."""
    ready = blocks.gauge("kube_pod_status_ready", scope, 'condition="true"', by=NAMESPACE)
    listed = f"{blocks.aggregate('count', ready, CLUSTER)} > 0"
    return (
        f"{blocks.vector('rayhelm:redis_info', scope)} unless on (cluster, namespace) ({ready} > 0) "
        f"and on (cluster) ({listed})"
    )


@query(unit="ratio", idle="value")
def used_object_quota(scope: Scope, by: By = (*NAMESPACE, "resourcequota", "resource")) -> str:
    """Used share of a ResourceQuota, of storage and counts of objects. GPUs, CPU, memory and pods are left out: their
    limits are what the plan and an upgrade need, so they are full in normal operation."""
    objects = 'resource!~"pods|(requests|limits)[.](cpu|memory|.*/.*)"'
    used = blocks.gauge("kube_resourcequota", scope, 'type="used"', objects, by=by, operator="max")
    hard = blocks.gauge("kube_resourcequota", scope, 'type="hard"', objects, by=by, operator="max")
    return f"{used} / ({hard} > 0)"


@query(unit="ratio", idle="no data")
def gateway_repeats(scope: Scope, window: str = "10m", by: By = VERSION, least: int = 20) -> str:
    """Share of the requests that the gateway sent again, to the same or another endpoint. No data with fewer than
    `least` requests in the window."""
    again = gateway.retries(scope, window, by=by)
    return f"{again} / ({blocks.increase('haproxy_backend_http_requests_total', scope, window, by=by)} >= {least})"


@query(unit="ratio", idle="no data")
def forwarded_share(scope: Scope, window: str = "15m", by: By = VERSION, least: int = 20) -> str:
    """Share of the requests that remote gateways answered. No data with fewer than `least` requests in the window, and
    for models that only other clusters serve."""
    forwarded = blocks.increase("haproxy_server_http_responses_total", scope, window, by=by)
    requests = blocks.increase("haproxy_backend_http_requests_total", scope, window, by=by)
    backups = blocks.gauge("haproxy_backend_backup_servers", scope, by=by, operator="max", zero=False)
    return f"({forwarded} / ({requests} >= {least}) unless {backups} == 0)"


@query(unit="ratio", idle="no data", first=True)
def limited_share(scope: Scope, window: str = "30m", by: By = TENANT, least: int = 20) -> str:
    """Share of the requests of a tenant that its own limits refused. No data with fewer than `least` requests in the
    window."""
    reason = 'reason=~"rate_limit_exceeded|concurrency_limit_exceeded|token_limit_exceeded"'
    refused = blocks.increase("rayhelm_gateway_rejections_total", scope, window, reason, by=by, zero=False)
    forwarded = blocks.increase("rayhelm_gateway_requests_total", scope, window, by=by, zero=False)
    return f"({refused}) / (({refused}) + ({forwarded} or 0 * ({refused})) >= {least})"


@query(unit="count", idle="no data", first=True)
def excess_reports(scope: Scope, window: str = "1h", by: By = (*GATEWAY, "model", "version", "owner")) -> str:
    """Responses in the window that reported more tokens than their request may cost, by where the model is served."""
    return blocks.increase("rayhelm_gateway_excess_reports_total", scope, window, by=by, zero=False)


@query(unit="ratio", idle="no data")
def lost_certificate_lifetime(scope: Scope, by: By = (*GATEWAY, "secret")) -> str:
    """Used share of the lifetime of the certificate that a gateway uses."""
    end, start = (
        blocks.gauge(f"rayhelm_gateway_certificate_{name}_timestamp_seconds", scope, by=by, operator="min", zero=False)
        for name in ("not_after", "not_before")
    )
    return f"(time() - ({start})) / (({end}) - ({start}))"


@query(unit="seconds", idle="no data")
def outdated_certificate(scope: Scope) -> str:
    """Services with a pod whose containers are older than the certificate of their Serve port, with the time between
    both. Ray reads the certificate when its container starts."""
    pod = "cluster, namespace, pod"
    # A pod starts before its volumes are mounted: a certificate may be issued later and still be the mounted one.
    start = blocks.gauge("kube_pod_container_state_started", scope, by=(*NAMESPACE, "pod"), operator="max")
    up = blocks.aggregate("max", blocks.vector("up", scope, f'{SERVICE_LABEL}!=""'), (*SERVICE, "pod"))
    oldest = blocks.aggregate("min", f"0 * {up} + on ({pod}) group_left () {start}", SERVICE)
    name = 'name=~".+-serve-tls"'
    issued = blocks.gauge(
        "certmanager_certificate_not_before_timestamp_seconds", scope, name, by=(*NAMESPACE, "name"), operator="max"
    )
    named = f'label_replace({issued}, "{SERVICE_LABEL}", "$1", "name", "(.+)-serve-tls")'
    return f"({blocks.aggregate('max', named, SERVICE)} - {oldest}) > 0"


@query(unit="seconds", idle="value")
def key_age(scope: Scope, by: By = (*GATEWAY, "pod")) -> str:
    """Time since a pod of the gateway has read all API keys."""
    return f"time() - {blocks.gauge('rayhelm_gateway_keys_read_timestamp_seconds', scope, by=by)}"


@query(unit="state", idle="value")
def ignored_maps(scope: Scope, by: By = (*GATEWAY, "pod")) -> str:
    """1 for a pod of the gateway that keeps its last limits and weights: the new are invalid, or for others."""
    names = ("rayhelm_gateway_maps_refused", "rayhelm_gateway_maps_for_other_pods")
    refused, other = (blocks.gauge(name, scope, by=by) for name in names)
    return f"({refused} > 0 or {other})"


@query(unit="seconds", idle="no data", first=True)
def token_key_age(scope: Scope, by: By = (*GATEWAY, "pod")) -> str:
    """Time since a pod of the gateway has read a valid JWKS. No data for a gateway that accepts no tokens."""
    read = blocks.gauge("rayhelm_gateway_token_keys_read_timestamp_seconds", scope, by=by, zero=False)
    return f"time() - {read}"


@query(unit="state", idle="value")
def down_targets(scope: Scope) -> str:
    """Targets of services and gateways that Prometheus finds and cannot scrape."""
    found = (blocks.vector("up", scope, f'{label}!=""') for label in (SERVICE_LABEL, GATEWAY_LABEL))
    return f"({' or '.join(found)}) == 0"


@query(unit="state", idle="value")
def scraped_services(scope: Scope, by: By = SERVICE) -> str:
    """Services of which Prometheus has a target."""
    return blocks.aggregate("max", blocks.vector("up", scope, f'{SERVICE_LABEL}!=""'), by)


@query(unit="state", idle="value")
def scraped_gateways(scope: Scope, by: By = GATEWAY) -> str:
    """Gateways of which Prometheus has a target."""
    return blocks.aggregate("max", blocks.vector("up", scope, f'{GATEWAY_LABEL}!=""'), by)
