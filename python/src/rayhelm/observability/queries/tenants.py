"""Tenants that send requests, as the gateway counts them."""

from rayhelm.observability.queries import blocks
from rayhelm.observability.queries.blocks import WINDOW
from rayhelm.observability.queries.labels import TENANT, By
from rayhelm.observability.queries.registry import query
from rayhelm.observability.queries.scope import Scope

__all__ = [
    "concurrency_usage",
    "rate_usage",
    "rejections",
    "request_rate",
]

REQUESTS = "rayhelm_gateway_requests_total"


@query(unit="requests/s", idle="no data")
def request_rate(scope: Scope, window: str = WINDOW, by: By = TENANT) -> str:
    """Requests per second by tenant. `by` may have `model`, `version` and `code`."""
    return blocks.rate(REQUESTS, scope, window, by=by)


@query(unit="requests", idle="no data", first=True)
def rejections(scope: Scope, window: str = WINDOW, by: By = (*TENANT, "reason")) -> str:
    """Requests in the window that the gateway refused, by the code of the error."""
    return blocks.increase("rayhelm_gateway_rejections_total", scope, window, by=by)


@query(unit="ratio", idle="value")
def rate_usage(scope: Scope, window: str = WINDOW, by: By = TENANT) -> str:
    """Requests per minute of a tenant, divided by its limit."""
    limit = blocks.gauge("rayhelm_gateway_limit", scope, 'limit="requests_per_minute"', by=by)
    return blocks.ratio(f"(60 * {blocks.rate(REQUESTS, scope, window, by=by)})", limit)


@query(unit="ratio", idle="value")
def concurrency_usage(scope: Scope, by: By = TENANT) -> str:
    """Requests in flight of a tenant, divided by its limit."""
    limit = blocks.gauge("rayhelm_gateway_limit", scope, 'limit="concurrency"', by=by)
    return blocks.ratio(blocks.gauge("rayhelm_gateway_requests_in_flight", scope, by=by), limit)
