"""Costs: GPUs of a service times their price, per hour, request and token.

The price is the recorded series `rayhelm:gpu_price:dollars_per_hour`, one for each worker group. Rules write it from
the prices of the fleet. A service without a price has no cost.
"""

from rayhelm.observe.queries import blocks, traffic
from rayhelm.observe.queries.labels import DEPLOYMENT, SERVICE, WORKER_GROUP_LABEL, By
from rayhelm.observe.queries.registry import query
from rayhelm.observe.queries.scope import Scope

__all__ = [
    "busy_replicas",
    "cost",
    "cost_per_hour",
    "cost_per_request",
    "free_gpus",
    "gpu_price",
    "gpus",
    "scraped_targets",
]

PRICE = "rayhelm:gpu_price:dollars_per_hour"
GROUP: By = (*SERVICE, WORKER_GROUP_LABEL)


@query(unit="gpus", idle="value")
def gpus(scope: Scope, by: By = GROUP) -> str:
    """GPUs that the worker pods of a service have, used or not. Ray counts a part of a GPU as the pod's resource
    does."""
    return blocks.gauge("ray_resources", scope, 'Name="GPU"', by=by)


@query(unit="gpus", idle="value")
def free_gpus(scope: Scope, by: By = GROUP) -> str:
    """GPUs of worker pods that no replica uses."""
    return blocks.gauge("ray_resources", scope, 'Name="GPU"', 'State="AVAILABLE"', by=by)


@query(unit="dollars/h", idle="value")
def gpu_price(scope: Scope, by: By = GROUP) -> str:
    """Price per hour of one GPU of a worker group."""
    return blocks.aggregate("max", blocks.vector(PRICE, scope), by)


@query(unit="replicas", idle="no data")
def busy_replicas(scope: Scope, by: By = DEPLOYMENT) -> str:
    """Replicas with a request in flight."""
    return blocks.aggregate("count", f"{blocks.vector('ray_serve_replica_processing_queries', scope)} > 0", by)


@query(unit="count", idle="value")
def scraped_targets(scope: Scope, window: str = "1h", by: By = ()) -> str:
    """Targets with a sample in the window. No data where Prometheus has none: it did not run, or has deleted it."""
    return blocks.aggregate("count", blocks.vector("up", scope, over="count_over_time", window=window), by)


@query(unit="dollars/h", idle="value")
def cost_per_hour(scope: Scope, by: By = SERVICE) -> str:
    """Price per hour of the GPUs of a service."""
    return blocks.aggregate("sum", _priced(gpus(scope, GROUP), scope), by)


@query(unit="dollars", idle="value")
def cost(scope: Scope, window: str = "1d", by: By = SERVICE, step: str = "5m") -> str:
    """Price of the GPUs of a service over the window."""
    hours = f"sum_over_time(({cost_per_hour(scope, by)})[{window}:{step}])"
    return f"{hours} * {_seconds(step)} / 3600"


@query(unit="dollars/request", idle="no data")
def cost_per_request(scope: Scope, window: str = "1h", by: By = SERVICE) -> str:
    """Price of the GPUs of a service, divided by its HTTP requests, at the rates of the window."""
    rate = blocks.rate("ray_serve_num_http_requests_total", scope, window, *traffic.CLIENTS, by=by, zero=False)
    return f"avg_over_time(({cost_per_hour(scope, by)})[{window}:1m]) / 3600 / ({rate} > 0)"


def _priced(text: str, scope: Scope) -> str:
    on = ", ".join(GROUP)
    return f"{text} * on ({on}) group_left () max by ({on}) ({blocks.vector(PRICE, scope)})"


def _seconds(duration: str) -> int:
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[duration[-1]]
