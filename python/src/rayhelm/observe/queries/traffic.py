"""Requests, tokens and errors of services."""

from rayhelm.observe.queries import blocks
from rayhelm.observe.queries.blocks import WINDOW
from rayhelm.observe.queries.labels import DEPLOYMENT, MODEL, SERVICE, By
from rayhelm.observe.queries.registry import query
from rayhelm.observe.queries.scope import Scope

__all__ = [
    "cached_prompt_token_rate",
    "error_ratio",
    "errors",
    "exceptions",
    "failed_requests",
    "finished_request_rate",
    "finished_requests",
    "generated_length",
    "generated_token_rate",
    "generated_tokens",
    "new_errors",
    "prompt_length",
    "prompt_token_rate",
    "prompt_tokens",
    "replica_request_rate",
    "request_rate",
    "requests",
]

CLIENTS = ('application!=""', 'route!~"/-/.*"')
"""Requests of clients: without health checks, and without paths that no application has."""
SERVER_ERRORS = 'error_code=~"5.."'


@query(unit="requests/s", idle="zero")
def request_rate(scope: Scope, window: str = WINDOW, by: By = SERVICE) -> str:
    """HTTP requests per second at the Serve proxies, without health checks. `by` may have `application`, `route`,
    `method` and `status_code`."""
    return blocks.rate("ray_serve_num_http_requests_total", scope, window, *CLIENTS, by=by)


@query(unit="requests", idle="zero", first=True)
def requests(scope: Scope, window: str = WINDOW, by: By = SERVICE) -> str:
    """HTTP requests in the window at the Serve proxies, without health checks."""
    return blocks.increase("ray_serve_num_http_requests_total", scope, window, *CLIENTS, by=by)


@query(unit="requests", idle="zero", first=True)
def errors(scope: Scope, window: str = WINDOW, by: By = SERVICE) -> str:
    """HTTP responses with a status from 500 in the window at the Serve proxies."""
    return blocks.increase("ray_serve_num_http_error_requests_total", scope, window, *CLIENTS, SERVER_ERRORS, by=by)


@query(unit="ratio", idle="no data", first=True)
def error_ratio(scope: Scope, window: str = WINDOW, by: By = SERVICE) -> str:
    """Share of HTTP requests that got a status from 500 at the Serve proxies."""
    failed = blocks.increase(
        "ray_serve_num_http_error_requests_total", scope, window, *CLIENTS, SERVER_ERRORS, by=by, zero=False
    )
    total = blocks.increase("ray_serve_num_http_requests_total", scope, window, *CLIENTS, by=by, zero=False)
    return blocks.ratio(failed, total)


@query(unit="count", idle="value")
def new_errors(scope: Scope, window: str = WINDOW, by: By = (*SERVICE, "application", "route", "error_code")) -> str:
    """Kinds of errors that did not exist before the window."""
    series = blocks.vector("ray_serve_num_http_error_requests_total", scope, *CLIENTS)
    return blocks.aggregate("count", f"{series} unless {series} offset {window}", by)


@query(unit="requests/s", idle="zero")
def replica_request_rate(scope: Scope, window: str = WINDOW, by: By = DEPLOYMENT) -> str:
    """Requests per second that replicas completed."""
    return blocks.rate("ray_serve_deployment_request_counter_total", scope, window, by=by)


@query(unit="count", idle="no data", first=True)
def exceptions(scope: Scope, window: str = WINDOW, by: By = (*DEPLOYMENT, "exception_type")) -> str:
    """Exceptions of replicas in the window. `EngineDeadError`: the engine died."""
    return blocks.increase("ray_serve_deployment_error_counter_total", scope, window, by=by)


@query(unit="requests/s", idle="no data")
def finished_request_rate(scope: Scope, window: str = WINDOW, by: By = (*MODEL, "finished_reason")) -> str:
    """Requests per second that the engines finished, by reason: `stop`, `length`, `abort`, `error` or `repetition`."""
    return blocks.rate("ray_vllm_request_success_total", scope, window, by=by)


@query(unit="requests", idle="zero", first=True)
def finished_requests(scope: Scope, window: str = WINDOW, by: By = MODEL) -> str:
    """Requests in the window that the engines finished, for any reason."""
    return blocks.increase("ray_vllm_request_success_total", scope, window, by=by)


@query(unit="requests", idle="zero", first=True)
def failed_requests(scope: Scope, window: str = WINDOW, by: By = MODEL) -> str:
    """Requests in the window that the engines ended with an error."""
    return blocks.increase("ray_vllm_request_success_total", scope, window, 'finished_reason="error"', by=by)


@query(unit="tokens/s", idle="zero")
def prompt_token_rate(scope: Scope, window: str = WINDOW, by: By = MODEL) -> str:
    """Prompt tokens per second, including those from the prefix cache."""
    return blocks.rate("ray_vllm_prompt_tokens_total", scope, window, by=by)


@query(unit="tokens/s", idle="zero")
def cached_prompt_token_rate(scope: Scope, window: str = WINDOW, by: By = MODEL) -> str:
    """Prompt tokens per second that came from a cache."""
    return blocks.rate("ray_vllm_prompt_tokens_cached_total", scope, window, by=by)


@query(unit="tokens/s", idle="zero")
def generated_token_rate(scope: Scope, window: str = WINDOW, by: By = MODEL) -> str:
    """Generated tokens per second."""
    return blocks.rate("ray_vllm_generation_tokens_total", scope, window, by=by)


@query(unit="tokens", idle="zero", first=True)
def prompt_tokens(scope: Scope, window: str = WINDOW, by: By = MODEL) -> str:
    """Prompt tokens in the window."""
    return blocks.increase("ray_vllm_prompt_tokens_total", scope, window, by=by)


@query(unit="tokens", idle="zero", first=True)
def generated_tokens(scope: Scope, window: str = WINDOW, by: By = MODEL) -> str:
    """Generated tokens in the window."""
    return blocks.increase("ray_vllm_generation_tokens_total", scope, window, by=by)


@query(unit="tokens", idle="no data")
def prompt_length(scope: Scope, window: str = WINDOW, by: By = MODEL, q: float = 0.5) -> str:
    """Quantile of the prompt length."""
    return blocks.quantile(q, "ray_vllm_request_prompt_tokens", scope, window, by=by)


@query(unit="tokens", idle="no data")
def generated_length(scope: Scope, window: str = WINDOW, by: By = MODEL, q: float = 0.5) -> str:
    """Quantile of the number of generated tokens of a request."""
    return blocks.quantile(q, "ray_vllm_request_generation_tokens", scope, window, by=by)
