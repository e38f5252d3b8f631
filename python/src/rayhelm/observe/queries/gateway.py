"""The gateway: HAProxy in front of the services. All series exist from the start of a pod on."""

from rayhelm.observe.queries import blocks
from rayhelm.observe.queries.blocks import WINDOW
from rayhelm.observe.queries.labels import GATEWAY, VERSION, By
from rayhelm.observe.queries.registry import query
from rayhelm.observe.queries.scope import Scope

__all__ = [
    "aborted_by_client",
    "available_endpoints",
    "certificate_lifetime",
    "connection_errors",
    "connection_usage",
    "dropped_logs",
    "error_ratio",
    "first_byte_time",
    "queued",
    "refused_rate",
    "remote_availability",
    "remote_response_rate",
    "request_rate",
    "requests_in_flight",
    "response_rate",
    "retries",
    "retry_ratio",
    "uptime",
    "version_request_rate",
    "version_share",
]

GATEWAY_POD: By = (*GATEWAY, "pod")
REMOTE: By = (*VERSION, "server")
"""`server` is `remote.` and the name of a remote gateway."""


@query(unit="requests/s", idle="value")
def request_rate(scope: Scope, window: str = WINDOW, by: By = GATEWAY) -> str:
    """Requests of clients per second, including those that the gateway refuses."""
    return blocks.rate("haproxy_frontend_http_requests_total", scope, window, by=by)


@query(unit="requests/s", idle="value")
def response_rate(scope: Scope, window: str = WINDOW, by: By = (*GATEWAY, "code")) -> str:
    """Responses to clients per second by class of the status."""
    return blocks.rate("haproxy_frontend_http_responses_total", scope, window, by=by)


@query(unit="ratio", idle="no data")
def error_ratio(scope: Scope, window: str = WINDOW, by: By = GATEWAY) -> str:
    """Share of responses to clients with a status from 500."""
    failed = blocks.rate("haproxy_frontend_http_responses_total", scope, window, 'code="5xx"', by=by)
    return blocks.ratio(failed, blocks.rate("haproxy_frontend_http_responses_total", scope, window, by=by))


@query(unit="requests/s", idle="value")
def refused_rate(scope: Scope, window: str = WINDOW, by: By = GATEWAY) -> str:
    """Requests per second that the gateway answered itself: refusals, and lists of models. `tenants.rejections` has the
    reasons."""
    return blocks.rate("haproxy_frontend_intercepted_requests_total", scope, window, by=by)


@query(unit="requests/s", idle="value")
def version_request_rate(scope: Scope, window: str = WINDOW, by: By = VERSION) -> str:
    """Requests per second that were forwarded, by model and version (`proxy`)."""
    return blocks.rate("haproxy_backend_http_requests_total", scope, window, by=by)


@query(unit="ratio", idle="no data")
def version_share(scope: Scope, window: str = WINDOW) -> str:
    """Share of a version in the requests of its model; the weights are the wanted shares."""
    part = blocks.rate("haproxy_backend_http_requests_total", scope, window, by=VERSION)
    labeled = f'label_replace({part}, "model", "$1", "proxy", "(.+):[^:]+")'
    whole = blocks.aggregate("sum", labeled, (*GATEWAY, "model"))
    return f"{labeled} / on ({', '.join((*GATEWAY, 'model'))}) group_left () ({whole} > 0)"


@query(unit="requests", idle="value")
def requests_in_flight(scope: Scope, by: By = VERSION) -> str:
    """Requests in flight by model and version, including those that wait for a connection."""
    return blocks.gauge("haproxy_backend_current_sessions", scope, by=by)


@query(unit="requests", idle="value")
def queued(scope: Scope, by: By = VERSION) -> str:
    """Requests that wait in the gateway for a connection."""
    return blocks.gauge("haproxy_backend_current_queue", scope, by=by)


@query(unit="servers", idle="value")
def available_endpoints(scope: Scope, by: By = VERSION) -> str:
    """Endpoints whose health check passes, in the gateway pod that sees fewest. For a version that only other clusters
    serve: its available remote gateways."""
    return blocks.gauge("haproxy_backend_active_servers", scope, by=by, operator="min")


@query(unit="state", idle="value")
def remote_availability(scope: Scope, by: By = REMOTE) -> str:
    """1 for each remote gateway that a pod of the gateway finds available for a model and version, and 0 for others."""
    return blocks.gauge("haproxy_server_status", scope, 'state="UP"', by=by, operator="max")


@query(unit="requests/s", idle="value")
def remote_response_rate(scope: Scope, window: str = WINDOW, by: By = REMOTE) -> str:
    """Responses of remote gateways per second: requests that were forwarded to other clusters."""
    return blocks.rate("haproxy_server_http_responses_total", scope, window, by=by)


@query(unit="seconds", idle="no data")
def certificate_lifetime(scope: Scope, by: By = (*GATEWAY, "secret")) -> str:
    """Time until the certificate that a gateway uses expires, of the pod whose certificate expires first. No data for a
    gateway without TLS of its own."""
    end = blocks.gauge(
        "rayhelm_gateway_certificate_not_after_timestamp_seconds", scope, by=by, operator="min", zero=False
    )
    return f"{end} - time()"


@query(unit="count", idle="value")
def retries(scope: Scope, window: str = WINDOW, by: By = VERSION) -> str:
    """Retries in the window, on the same endpoint or another one. HAProxy counts one after a refused connection as a
    redispatch, and one after a lost request as a retry and a redispatch: the larger counter has all of them once."""
    again, elsewhere = (
        blocks.increase(f"haproxy_backend_{name}_warnings_total", scope, window, by=(*VERSION, "pod"))
        for name in ("retry", "redispatch")
    )
    return blocks.aggregate("sum", f"({again} >= {elsewhere}) or {elsewhere}", by)


@query(unit="ratio", idle="no data")
def retry_ratio(scope: Scope, window: str = WINDOW, by: By = VERSION) -> str:
    """Retries per forwarded request."""
    again = retries(scope, window, by=by)
    return blocks.ratio(again, blocks.increase("haproxy_backend_http_requests_total", scope, window, by=by))


@query(unit="count", idle="value")
def connection_errors(scope: Scope, window: str = WINDOW, by: By = VERSION) -> str:
    """Connections to endpoints in the window that failed."""
    return blocks.increase("haproxy_backend_connection_errors_total", scope, window, by=by)


@query(unit="requests", idle="value")
def aborted_by_client(scope: Scope, window: str = WINDOW, by: By = VERSION) -> str:
    """Requests in the window that clients aborted."""
    return blocks.increase("haproxy_backend_client_aborts_total", scope, window, by=by)


@query(unit="seconds", idle="value")
def first_byte_time(scope: Scope, by: By = VERSION) -> str:
    """Average time to the first byte of the last 1024 requests, of the slowest gateway pod. HAProxy has no
    histogram."""
    return blocks.gauge("haproxy_backend_response_time_average_seconds", scope, by=by, operator="max")


@query(unit="ratio", idle="value")
def connection_usage(scope: Scope, by: By = GATEWAY_POD) -> str:
    """Used share of the connections that a gateway pod accepts."""
    used = blocks.gauge("haproxy_process_current_connections", scope, by=by)
    return blocks.ratio(used, blocks.gauge("haproxy_process_max_connections", scope, by=by))


@query(unit="seconds", idle="value")
def uptime(scope: Scope, by: By = GATEWAY_POD) -> str:
    """Time since the start of HAProxy in a gateway pod."""
    return blocks.gauge("haproxy_process_uptime_seconds", scope, by=by, operator="min")


@query(unit="count", idle="value")
def dropped_logs(scope: Scope, window: str = WINDOW, by: By = GATEWAY_POD) -> str:
    """Log lines in the window that HAProxy could not write."""
    return blocks.increase("haproxy_process_dropped_logs_total", scope, window, by=by)
