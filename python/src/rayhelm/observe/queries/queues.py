"""Queues in Serve and in the engines, KV cache, prefix cache, preemptions."""

from rayhelm.observe.queries import blocks
from rayhelm.observe.queries.blocks import WINDOW
from rayhelm.observe.queries.labels import DEPLOYMENT, MODEL, SERVICE, By
from rayhelm.observe.queries.registry import query
from rayhelm.observe.queries.scope import Scope

__all__ = [
    "accepted_draft_ratio",
    "cached_prompt_ratio",
    "failed_kv_transfers",
    "kv_cache_usage",
    "kv_transfer_time",
    "preemptions",
    "prefix_cache_hit_ratio",
    "proxy_requests",
    "queue_length",
    "replica_requests",
    "running",
    "serve_queued",
    "waiting",
    "waiting_by_reason",
]

KV = "ray_vllm_kv_cache_usage_perc"
WAITING, QUEUED = "ray_vllm_num_requests_waiting", "ray_serve_deployment_queued_queries"


@query(unit="requests", idle="zero")
def running(scope: Scope, by: By = MODEL) -> str:
    """Requests that the engines execute."""
    return blocks.gauge("ray_vllm_num_requests_running", scope, by=by)


@query(unit="requests", idle="zero")
def waiting(scope: Scope, by: By = MODEL) -> str:
    """Requests that wait in the engines."""
    return blocks.gauge(WAITING, scope, by=by)


@query(unit="requests", idle="no data")
def waiting_by_reason(scope: Scope, by: By = (*MODEL, "reason")) -> str:
    """Requests that wait in the engines: `capacity` for a place in the batch, `deferred` for a LoRA adapter or a KV
    transfer."""
    return blocks.gauge("ray_vllm_num_requests_waiting_by_reason", scope, by=by)


@query(unit="requests", idle="value")
def serve_queued(scope: Scope, by: By = DEPLOYMENT) -> str:
    """Requests that wait in Serve's routers for a replica."""
    return blocks.gauge(QUEUED, scope, by=by)


@query(unit="requests", idle="zero")
def queue_length(scope: Scope, by: By = SERVICE) -> str:
    """Requests that wait, in Serve and in the engines together."""
    return f"({blocks.gauge(WAITING, scope, by=by)}) + ({blocks.gauge(QUEUED, scope, by=by)})"


@query(unit="requests", idle="value")
def replica_requests(scope: Scope, by: By = DEPLOYMENT) -> str:
    """Requests in the replicas."""
    return blocks.gauge("ray_serve_replica_processing_queries", scope, by=by)


@query(unit="requests", idle="zero")
def proxy_requests(scope: Scope, by: By = SERVICE) -> str:
    """HTTP requests in flight at the Serve proxies."""
    return blocks.gauge("ray_serve_num_ongoing_http_requests", scope, by=by)


@query(unit="ratio", idle="zero")
def kv_cache_usage(scope: Scope, by: By = MODEL) -> str:
    """Used share of the KV cache, of the engine that uses most."""
    return blocks.gauge(KV, scope, by=by, operator="max")


@query(unit="seconds", idle="no data")
def kv_transfer_time(scope: Scope, window: str = WINDOW, by: By = MODEL, q: float = 0.95) -> str:
    """Quantile of the time of a transfer of the KV cache from a prefill to a decode replica."""
    return blocks.quantile(q, "ray_vllm_nixl_xfer_time_seconds", scope, window, by=by)


@query(unit="count", idle="zero", first=True)
def failed_kv_transfers(scope: Scope, window: str = WINDOW, by: By = MODEL) -> str:
    """Transfers of the KV cache in the window that failed, and requests whose cache no decode replica fetched in
    time."""
    failed = blocks.increase("ray_vllm_nixl_num_failed_transfers_total", scope, window, by=by)
    return f"({failed}) + ({blocks.increase('ray_vllm_nixl_num_kv_expired_reqs_total', scope, window, by=by)})"


@query(unit="count", idle="zero", first=True)
def preemptions(scope: Scope, window: str = WINDOW, by: By = MODEL) -> str:
    """Requests in the window that lost their KV cache blocks and have to be computed again."""
    return blocks.increase("ray_vllm_num_preemptions_total", scope, window, by=by)


@query(unit="ratio", idle="no data")
def prefix_cache_hit_ratio(scope: Scope, window: str = WINDOW, by: By = MODEL) -> str:
    """Share of looked-up tokens that the prefix cache had."""
    hits = blocks.rate("ray_vllm_prefix_cache_hits_total", scope, window, by=by, zero=False)
    return blocks.ratio(hits, blocks.rate("ray_vllm_prefix_cache_queries_total", scope, window, by=by, zero=False))


@query(unit="ratio", idle="no data")
def cached_prompt_ratio(scope: Scope, window: str = WINDOW, by: By = MODEL) -> str:
    """Share of prompt tokens that came from a cache, the prefix cache or an external one."""
    cached = blocks.rate("ray_vllm_prompt_tokens_cached_total", scope, window, by=by, zero=False)
    return blocks.ratio(cached, blocks.rate("ray_vllm_prompt_tokens_total", scope, window, by=by, zero=False))


@query(unit="ratio", idle="no data")
def accepted_draft_ratio(scope: Scope, window: str = WINDOW, by: By = MODEL) -> str:
    """Share of the draft tokens of speculative decoding that were accepted."""
    accepted = blocks.rate("ray_vllm_spec_decode_num_accepted_tokens_total", scope, window, by=by, zero=False)
    drafted = blocks.rate("ray_vllm_spec_decode_num_draft_tokens_total", scope, window, by=by, zero=False)
    return blocks.ratio(accepted, drafted)
