"""Latencies: quantiles, never means, because Ray approximates the sums of histograms."""

from rayhelm.observe.queries import blocks
from rayhelm.observe.queries.blocks import WINDOW
from rayhelm.observe.queries.labels import DEPLOYMENT, MODEL, SERVICE, By
from rayhelm.observe.queries.registry import query
from rayhelm.observe.queries.scope import Scope
from rayhelm.observe.queries.traffic import CLIENTS

__all__ = [
    "decode_time",
    "engine_queue_time",
    "inter_token_latency",
    "prefill_time",
    "proxy_latency",
    "replica_latency",
    "request_latency",
    "request_latency_buckets",
    "routing_time",
    "time_per_output_token",
    "time_to_first_token",
    "time_to_first_token_buckets",
]

E2E, TTFT = "ray_vllm_e2e_request_latency_seconds", "ray_vllm_time_to_first_token_seconds"
TPOT, ITL = "ray_vllm_request_time_per_output_token_seconds", "ray_vllm_inter_token_latency_seconds"

OUTPUT = "ray_vllm_request_generation_tokens"


@query(unit="seconds", idle="no data")
def time_to_first_token(scope: Scope, window: str = WINDOW, by: By = MODEL, q: float = 0.95) -> str:
    """Quantile of the time to first token (TTFT), measured in the engine: without proxies and gateway."""
    return blocks.quantile(q, TTFT, scope, window, by=by)


@query(unit="seconds", idle="no data")
def time_per_output_token(scope: Scope, window: str = WINDOW, by: By = MODEL, q: float = 0.95) -> str:
    """Quantile over requests of the mean time per output token (TPOT) after the first. Values below 10 ms are not
    resolved. Requests of one token or none are left out: vLLM counts them as 0 s."""
    return blocks.quantile_above_one(q, TPOT, scope, window, by=by, amount=OUTPUT)


@query(unit="seconds", idle="no data")
def inter_token_latency(scope: Scope, window: str = WINDOW, by: By = MODEL, q: float = 0.95) -> str:
    """Quantile over tokens of the time between two tokens (ITL). Values below 10 ms are not resolved."""
    return blocks.quantile(q, ITL, scope, window, by=by)


@query(unit="seconds", idle="no data")
def request_latency(scope: Scope, window: str = WINDOW, by: By = MODEL, q: float = 0.95) -> str:
    """Quantile of the time of a request in the engine (E2E). Values below 0.3 s are not resolved."""
    return blocks.quantile(q, E2E, scope, window, by=by)


@query(unit="seconds", idle="no data")
def engine_queue_time(scope: Scope, window: str = WINDOW, by: By = MODEL, q: float = 0.95) -> str:
    """Quantile of the time that a request waits in the engine. Values below 0.3 s are not resolved."""
    return blocks.quantile(q, "ray_vllm_request_queue_time_seconds", scope, window, by=by)


@query(unit="seconds", idle="no data")
def prefill_time(scope: Scope, window: str = WINDOW, by: By = MODEL, q: float = 0.95) -> str:
    """Quantile of the prefill time of a request. Values below 0.3 s are not resolved."""
    return blocks.quantile(q, "ray_vllm_request_prefill_time_seconds", scope, window, by=by)


@query(unit="seconds", idle="no data")
def decode_time(scope: Scope, window: str = WINDOW, by: By = MODEL, q: float = 0.95) -> str:
    """Quantile of the decode time of a request. Values below 0.3 s are not resolved."""
    return blocks.quantile(q, "ray_vllm_request_decode_time_seconds", scope, window, by=by)


@query(unit="seconds", idle="no data")
def proxy_latency(scope: Scope, window: str = WINDOW, by: By = (*SERVICE, "application"), q: float = 0.95) -> str:
    """Quantile of the time of an HTTP request at the Serve proxy, without health checks."""
    return blocks.quantile(q, "ray_serve_http_request_latency_ms", scope, window, *CLIENTS, by=by)


@query(unit="seconds", idle="no data")
def replica_latency(scope: Scope, window: str = WINDOW, by: By = DEPLOYMENT, q: float = 0.95) -> str:
    """Quantile of the time of a request in a replica."""
    return blocks.quantile(q, "ray_serve_deployment_processing_latency_ms", scope, window, by=by)


@query(unit="seconds", idle="no data")
def routing_time(scope: Scope, window: str = WINDOW, by: By = DEPLOYMENT, q: float = 0.95) -> str:
    """Quantile of the time that a request waits in the router for a replica."""
    return blocks.quantile(q, "ray_serve_request_router_fulfillment_time_ms", scope, window, by=by)


@query(unit="seconds", idle="value")
def time_to_first_token_buckets(scope: Scope, window: str = WINDOW, by: By = ("le",)) -> str:
    """Requests per second up to each bucket boundary of the time to first token, for a heatmap. The unit is that of the
    boundaries."""
    return blocks.aggregate("sum", blocks.vector(TTFT, scope, suffix="_bucket", over="rate", window=window), by)


@query(unit="seconds", idle="value")
def request_latency_buckets(scope: Scope, window: str = WINDOW, by: By = ("le",)) -> str:
    """Requests per second up to each bucket boundary of the time of a request in the engine, for a heatmap. The unit is
    that of the boundaries."""
    return blocks.aggregate("sum", blocks.vector(E2E, scope, suffix="_bucket", over="rate", window=window), by)
