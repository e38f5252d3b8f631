"""Replicas, autoscaling and cold starts. Bounds of autoscaling are in the values, not in a metric."""

from rayhelm.observe.queries import blocks
from rayhelm.observe.queries.blocks import WINDOW
from rayhelm.observe.queries.labels import DEPLOYMENT, SERVICE, By
from rayhelm.observe.queries.registry import query
from rayhelm.observe.queries.scope import Scope

__all__ = [
    "application_status",
    "cold_start_time",
    "deployment_status",
    "desired_replicas",
    "failed_node_launches",
    "first_tokens_by_replica",
    "health_check_failures",
    "healthy_replicas",
    "initialization_time",
    "load_signal",
    "missing_replicas",
    "needed_replicas",
    "pending_nodes",
    "queue_signal",
    "replica_starts",
    "requests_per_replica",
    "scraped_deployments",
    "target_replicas",
    "target_requests_per_replica",
    "waiting_by_replica",
]

RUNNING, HEALTHY = 6, 6
"""Values of `application_status` and `deployment_status`."""
TARGET, HEALTHY_REPLICAS = "ray_serve_autoscaling_target_replicas", "ray_serve_deployment_replica_healthy"
TOTAL, PER_REPLICA = "ray_serve_autoscaling_total_requests", "ray_serve_autoscaling_target_ongoing_requests"


@query(unit="replicas", idle="value")
def desired_replicas(scope: Scope, by: By = DEPLOYMENT) -> str:
    """Replicas that the autoscaling policy asks for, before the bounds."""
    return blocks.gauge("ray_serve_autoscaling_desired_replicas", scope, by=by)


@query(unit="replicas", idle="value")
def target_replicas(scope: Scope, by: By = DEPLOYMENT) -> str:
    """Replicas that Serve wants, after the bounds."""
    return blocks.gauge(TARGET, scope, by=by)


@query(unit="replicas", idle="value")
def healthy_replicas(scope: Scope, by: By = DEPLOYMENT) -> str:
    """Replicas whose health check passes."""
    # A replica that stopped has no series after 20 s, so a deployment whose replicas all stopped has none.
    return f"{blocks.gauge(HEALTHY_REPLICAS, scope, by=by)} or 0 * {blocks.gauge(TARGET, scope, by=by)}"


@query(unit="replicas", idle="value")
def missing_replicas(scope: Scope, by: By = DEPLOYMENT) -> str:
    """Replicas that Serve wants and that are not healthy."""
    return f"{blocks.gauge(TARGET, scope, by=by)} - ({healthy_replicas(scope, by)})"


@query(unit="requests", idle="value")
def requests_per_replica(scope: Scope, by: By = DEPLOYMENT) -> str:
    """Requests per wanted replica as the autoscaler sees them: queued and running, averaged over its look-back
    period."""
    return blocks.ratio(blocks.gauge(TOTAL, scope, by=by), blocks.gauge(TARGET, scope, by=by))


@query(unit="requests", idle="value")
def target_requests_per_replica(scope: Scope, by: By = DEPLOYMENT) -> str:
    """Requests per replica that the autoscaler aims at. 1e9 for a deployment that is not meant to scale."""
    return blocks.gauge(PER_REPLICA, scope, by=by, operator="max")


@query(unit="replicas", idle="value")
def needed_replicas(scope: Scope, by: By = DEPLOYMENT) -> str:
    """Requests divided by the target per replica: the input of Ray's own scaling rule."""
    return blocks.ratio(blocks.gauge(TOTAL, scope, by=by), blocks.gauge(PER_REPLICA, scope, by=by, operator="max"))


@query(unit="ratio", idle="value")
def load_signal(scope: Scope, by: By = DEPLOYMENT) -> str:
    """Requests per wanted replica, divided by the target: above 1 Ray's own rule adds replicas."""
    requests = blocks.ratio(blocks.gauge(TOTAL, scope, by=by), blocks.gauge(TARGET, scope, by=by))
    return f"{requests} / {blocks.gauge(PER_REPLICA, scope, by=by, operator='max')}"


@query(unit="ratio", idle="zero")
def queue_signal(scope: Scope, by: By = DEPLOYMENT, limit: float = 2) -> str:
    """Requests that wait in the engine of a replica, divided by the limit of the policy `engine-queue`: above 1 it adds
    replicas."""
    waiting = blocks.gauge("ray_vllm_num_requests_waiting", scope, by=by)
    return f"{blocks.ratio(f'({waiting})', blocks.gauge(HEALTHY_REPLICAS, scope, by=by))} / {limit}"


@query(unit="seconds", idle="no data")
def cold_start_time(scope: Scope, window: str = "1d", by: By = DEPLOYMENT, q: float = 0.95) -> str:
    """Quantile of the time from the creation of a replica until it is ready. Values above 240 s are not resolved."""
    return blocks.quantile_of_rare(q, "ray_serve_replica_startup_latency_ms", scope, window, by=by)


@query(unit="seconds", idle="no data")
def initialization_time(scope: Scope, window: str = "1d", by: By = DEPLOYMENT, q: float = 0.95) -> str:
    """Quantile of the time that the constructor of a replica takes, with the load of the weights. Values above 240 s
    are not resolved."""
    return blocks.quantile_of_rare(q, "ray_serve_replica_initialization_latency_ms", scope, window, by=by)


@query(unit="count", idle="zero", first=True)
def replica_starts(scope: Scope, window: str = "1h", by: By = DEPLOYMENT) -> str:
    """Starts of replicas in the window."""
    return blocks.increase("ray_serve_deployment_replica_starts_total", scope, window, by=by)


@query(unit="count", idle="zero", first=True)
def health_check_failures(scope: Scope, window: str = "15m", by: By = DEPLOYMENT) -> str:
    """Failed health checks of replicas in the window."""
    return blocks.increase("ray_serve_health_check_failures_total", scope, window, by=by)


@query(unit="state", idle="value")
def application_status(scope: Scope, by: By = (*SERVICE, "application")) -> str:
    """Status of an application: 6 RUNNING, 5 DEPLOYING, 4 DELETING, 3 NOT_STARTED, 2 UNHEALTHY, 1 DEPLOY_FAILED."""
    return blocks.gauge("ray_serve_application_status", scope, by=by, operator="max")


@query(unit="state", idle="value")
def deployment_status(scope: Scope, by: By = DEPLOYMENT) -> str:
    """Status of a deployment: 6 HEALTHY, 5 DOWNSCALING, 4 UPSCALING, 3 UPDATING, 2 UNHEALTHY, 1 DEPLOY_FAILED."""
    return blocks.gauge("ray_serve_deployment_status", scope, by=by, operator="max")


@query(unit="nodes", idle="value")
def pending_nodes(scope: Scope, by: By = (*SERVICE, "NodeType")) -> str:
    """Ray nodes that the autoscaler asked for and that have not started. No data without Ray's autoscaler."""
    return blocks.gauge("autoscaler_pending_nodes", scope, by=by)


@query(unit="count", idle="value")
def failed_node_launches(scope: Scope, window: str = WINDOW, by: By = SERVICE) -> str:
    """Ray nodes in the window that could not be created. No data without Ray's autoscaler."""
    return blocks.increase("autoscaler_failed_create_nodes_total", scope, window, by=by)


@query(unit="count", idle="value")
def scraped_deployments(scope: Scope, by: By = ()) -> str:
    """Deployments that Prometheus knows; no data if it does not scrape the service. For the scaling policy."""
    return blocks.aggregate("count", blocks.vector(TARGET, scope), by)


@query(unit="requests", idle="no data")
def waiting_by_replica(scope: Scope, window: str = "60s", by: By = ("ReplicaId",)) -> str:
    """Requests that wait in the engine of a replica, averaged over the window. For the scaling policy, which takes a
    missing replica for an idle one."""
    name = "ray_vllm_num_requests_waiting"
    return blocks.gauge(name, scope, by=by, over="avg_over_time", window=window, zero=False)


@query(unit="requests", idle="no data")
def first_tokens_by_replica(scope: Scope, window: str = "120s", by: By = ("ReplicaId", "le")) -> str:
    """First tokens in the window by replica and bound of the time to first token. For the scaling policy."""
    name = "ray_vllm_time_to_first_token_seconds"
    return blocks.aggregate("sum", blocks.vector(name, scope, suffix="_bucket", over="increase", window=window), by)
