"""Requests of the versions of a model in one window, as counts: the tests of `rayhelm promote` compare them."""

from rayhelm.observe.queries import blocks
from rayhelm.observe.queries.labels import MODEL, VERSION, By
from rayhelm.observe.queries.latency import TPOT, TTFT
from rayhelm.observe.queries.registry import query
from rayhelm.observe.queries.scope import Scope

__all__ = ["finished", "first_tokens", "output_tokens", "responses"]


@query(unit="requests", idle="value")
def responses(scope: Scope, window: str = "1h", by: By = (*VERSION, "code")) -> str:
    """Responses in the window by model, version (`proxy`) and class of the status, at the gateway."""
    return blocks.increase("haproxy_backend_http_responses_total", scope, window, by=by)


@query(unit="requests", idle="no data", first=True)
def first_tokens(scope: Scope, window: str = "1h", by: By = (*MODEL, "le")) -> str:
    """Requests in the window with a time to first token of at most `le` seconds."""
    return blocks.increase(TTFT, scope, window, by=by, suffix="_bucket", zero=False)


@query(unit="requests", idle="no data", first=True)
def output_tokens(scope: Scope, window: str = "1h", by: By = (*MODEL, "le")) -> str:
    """Requests in the window with a mean time per output token of at most `le` seconds."""
    return blocks.increase(TPOT, scope, window, by=by, suffix="_bucket", zero=False)


@query(unit="requests", idle="no data", first=True)
def finished(scope: Scope, window: str = "1h", by: By = (*MODEL, "finished_reason")) -> str:
    """Requests in the window that the engines finished, by reason."""
    return blocks.increase("ray_vllm_request_success_total", scope, window, by=by, zero=False)
