"""One log line of the engine per sequence: request id, tenant, tokens, times and how it ended; no text.

vLLM logs requests with `enable_log_requests`, and then parameters too, which contain text of the client: stop strings,
grammars. So this module reads the numbers from vLLM's output processor. The line goes to Ray Serve's log of the
replica, and only if Serve logs requests (`serve.logging.accessLog`, which changes in place).
"""

import contextvars
import logging
import time
from collections.abc import Iterable
from typing import Any

from rayhelm.runtime.request_log import add_tenants, remember_tenant

__all__ = ["log_requests", "remember_request"]

MESSAGE = "engine request ended"
"""Message of the line, for a search."""
_logger = logging.getLogger("ray.serve.engine")
_request: contextvars.ContextVar[tuple[str, str]] = contextvars.ContextVar("rayhelm_request", default=("", ""))
"""Id and tenant of the request that this task processes. Serve's own context is not in each task that vLLM starts."""


def remember_request(tenant: str) -> None:
    """Remember the request of this task and its tenant, before the engine gets it."""
    from ray.serve.context import _get_serve_request_context

    request_id = str(_get_serve_request_context().request_id)
    _request.set((request_id, tenant))
    remember_tenant(request_id, tenant)


def log_requests(processor: Any, model: str) -> None:
    """Log each sequence of an output processor of vLLM. Raises AttributeError for an unknown vLLM."""
    add_request, abort_requests = processor.add_request, processor.abort_requests
    update_stats = processor._update_stats_from_finished
    add_tenants()

    def add_remembered_request(request: Any, *args: Any, **kwargs: Any) -> None:
        add_request(request, *args, **kwargs)
        if state := processor.request_states.get(request.request_id):
            state.rayhelm_request = _request.get()

    def update_logged_stats(state: Any, finish_reason: Any, *args: Any, **kwargs: Any) -> None:
        update_stats(state, finish_reason, *args, **kwargs)
        _log(state, str(finish_reason), model)

    def abort_logged_requests(request_ids: Iterable[str], *args: Any, **kwargs: Any) -> Any:
        states = list(processor.request_states.items())
        aborted = abort_requests(request_ids, *args, **kwargs)
        for name, state in states:
            if name not in processor.request_states:
                _log(state, "abort", model)
        return aborted

    processor.add_request = add_remembered_request
    processor.abort_requests = abort_logged_requests
    processor._update_stats_from_finished = update_logged_stats


def _log(state: Any, finish_reason: str, model: str) -> None:
    """Log the end of a sequence, once. A failure is logged, because the engine has to go on."""
    request_id, tenant = getattr(state, "rayhelm_request", ("", ""))
    state.rayhelm_request = ("", "")
    if not request_id:
        return
    try:
        fields = _read_fields(state, finish_reason) | {"request_id": request_id, "tenant": tenant, "model": model}
        # This runs in the engine's own task. In an empty context Serve's filter does not add a request of its own.
        contextvars.Context().run(_logger.info, MESSAGE, extra=fields)
    except Exception:
        _logger.exception("a line of the engine's log failed")


def _read_fields(state: Any, finish_reason: str) -> dict[str, Any]:
    stats = state.stats
    fields = {
        # Serve's mark of a line that `enable_access_log` switches.
        "serve_access_log": True,
        "finish_reason": finish_reason,
        "prompt_tokens": state.prompt_len,
        "cached_tokens": state.num_cached_tokens,
        "generation_tokens": stats.num_generation_tokens,
        "total_ms": _as_ms(time.time() - stats.arrival_time),
    }
    if stats.scheduled_ts:
        fields["queue_ms"] = _as_ms(stats.scheduled_ts - stats.queued_ts)
    if stats.num_generation_tokens:
        fields["first_token_ms"] = _as_ms(stats.first_token_latency)
    return fields


def _as_ms(seconds: float) -> float:
    return round(seconds * 1000, 1)
