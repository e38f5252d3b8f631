"""Trace requests over OTLP. Serve calls `span_processors` in each proxy and replica, and `middlewares` in each proxy,
if `RAY_SERVE_TRACING_EXPORTER_IMPORT_PATH` and `RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH` name them.

The proxy makes the first span of a request and decides whether it is sampled, unless the gateway has decided. Serve and
vLLM follow: with `RAY_SERVE_TRACING_SAMPLING_RATIO=0` they make spans only for requests whose `traceparent` is sampled.
(Without 0, Serve's replicas would decide a second time about each request that is not sampled.) vLLM reads the header
`traceparent` itself, so its span is in the same trace.

Only the attributes of `ALLOWED` are exported, and no message of an exception: these could quote a prompt.
"""

import logging
import os
import random
import re
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from rayhelm.runtime import stream_errors

__all__ = ["ALLOWED", "RequestTrace", "TraceMiddleware", "decide", "middlewares", "remove_text", "span_processors"]

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]

RATIO = "RAYHELM_TRACING_RATIO"
"""Variable with the share of requests to sample, for requests without `traceparent`."""
NEW_TRACE = b"x-rayhelm-new-trace"
"""Header of the gateway: it made the trace id, and no span has the parent id of `traceparent`."""
TENANT, REQUEST_ID = b"x-rayhelm-tenant", b"x-request-id"
"""Headers of the gateway; it removes them from requests of clients."""

ALLOWED = frozenset(
    (
        # This module
        *("tenant", "request_id", "error.type", "http.request.method", "http.response.status_code", "http.route"),
        # Ray Serve
        *("app", "call_method", "deployment", "is_grpc_request", "is_http_request", "is_streaming", "replica_id"),
        *("request_method", "request_route_path", "request_type", "resource.name", "route"),
        *("http.method", "http.status_code", "rpc.grpc.status_code", "rpc.method", "rpc.service", "rpc.system"),
        # vLLM
        *(f"gen_ai.request.{name}" for name in ("id", "max_tokens", "n", "temperature", "top_p")),
        *(f"gen_ai.usage.{name}" for name in ("completion_tokens", "num_sequences", "prompt_tokens")),
        *(f"gen_ai.latency.{name}" for name in ("e2e", "time_in_queue", "time_to_first_token")),
        *(f"gen_ai.latency.time_in_model_{name}" for name in ("decode", "inference", "prefill")),
        # Exceptions
        *("exception.type", "exception.escaped"),
    )
)
"""Names of attributes that are exported, of spans and of their events."""

logger = logging.getLogger("ray.serve")

_PARENT = re.compile(rb"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_SAMPLED = 1


@dataclass(frozen=True)
class RequestTrace:
    """The trace of a request, and whether it is sampled."""

    trace_id: int
    parent_id: int
    """Span id of the client or the gateway; 0 for none."""
    is_sampled: bool


def decide(headers: Headers, ratio: float) -> RequestTrace:
    """Return the trace that `traceparent` names, else a new one, sampled with the probability `ratio`."""
    given = dict(headers)
    found = _PARENT.fullmatch(given.get(b"traceparent", b""))
    trace_id, parent_id = (int(found[1], 16), int(found[2], 16)) if found else (0, 0)
    if not (found and trace_id and parent_id):
        return RequestTrace(_draw_id(128), 0, random.random() < ratio)
    is_root = given.get(NEW_TRACE) == b"1"
    return RequestTrace(trace_id, 0 if is_root else parent_id, bool(int(found[3], 16) & _SAMPLED))


class TraceMiddleware:
    """ASGI middleware. Passes messages on unchanged; the request gets the `traceparent` of the span made here."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._ratio = float(os.environ.get(RATIO, "0"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith("/-/"):
            return await self._app(scope, receive, send)
        decision, span_id, start = decide(scope["headers"], self._ratio), _draw_id(64), time.time_ns()
        parent = f"00-{decision.trace_id:032x}-{span_id:016x}-{'01' if decision.is_sampled else '00'}"
        kept = [(name, value) for name, value in scope["headers"] if name not in (b"traceparent", NEW_TRACE)]
        traced = {**scope, "headers": [*kept, (b"traceparent", parent.encode())]}
        if not decision.is_sampled:
            return await self._app(traced, receive, send)
        status, error = 0, ""

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(traced, receive, send_noted)
        except BaseException as raised:
            error = type(raised).__name__
            raise
        finally:
            _processor().on_end(_build_span(scope, decision, span_id, start, status, error))


def middlewares() -> list[Any]:
    """Return the `starlette.middleware.Middleware` objects that Serve asks for. Starlette comes with Ray Serve."""
    from starlette.middleware import Middleware

    return [Middleware(TraceMiddleware), *stream_errors.middlewares()]


def span_processors() -> list[Any]:
    """Return the OpenTelemetry span processors that Serve asks for."""
    return [_processor()]


def remove_text(span: Any) -> Any:
    """Return a copy of a span with the attributes of `ALLOWED` only, and without a message of its status."""
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.trace import Status

    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=_select(span.attributes),
        events=[Event(event.name, _select(event.attributes), event.timestamp) for event in span.events],
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


@cache
def _processor() -> Any:
    """Return the span processor of this process. It exports in a thread, and drops spans when the collector is down.

    Without an exporter it drops all spans: requests matter more than their traces.
    """
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

    try:
        exporter = _create_exporter()
    except (ImportError, KeyError, ValueError) as error:
        logger.warning("no traces are sent: %s: %s", type(error).__name__, error)
        return SpanProcessor()

    class TextFreeExporter(SpanExporter):
        """Exports spans without attributes that could have text of a client."""

        def export(self, spans: Sequence[Any]) -> Any:
            return exporter.export([remove_text(span) for span in spans])

        def shutdown(self) -> None:
            exporter.shutdown()

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            return bool(exporter.force_flush(timeout_millis))

    return BatchSpanProcessor(TextFreeExporter())


def _create_exporter() -> Any:
    """Return the OTLP exporter for the variables that vLLM reads too. Raises KeyError without an endpoint."""
    endpoint = os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]
    if os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc") == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc

        return Grpc(endpoint=endpoint, insecure=endpoint.startswith("http://"))
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as Http

    return Http(endpoint=endpoint)


@cache
def _resource() -> Any:
    from opentelemetry.sdk.resources import Resource

    return Resource.create()


def _build_span(scope: Scope, decision: RequestTrace, span_id: int, start: int, status: int, error: str) -> Any:
    """Return the finished span of a request."""
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    def context(number: int, *, is_remote: bool) -> Any:
        return SpanContext(decision.trace_id, number, is_remote, TraceFlags(_SAMPLED))

    given = dict(scope["headers"])
    known = {
        "tenant": given.get(TENANT, b"").decode("latin-1"),
        "request_id": given.get(REQUEST_ID, b"").decode("latin-1"),
    }
    known |= {"http.request.method": scope["method"], "http.route": scope["path"], "error.type": error}
    known |= {"http.response.status_code": status}
    return ReadableSpan(
        name=f"{scope['method']} {scope['path']}",
        context=context(span_id, is_remote=False),
        parent=context(decision.parent_id, is_remote=True) if decision.parent_id else None,
        resource=_resource(),
        attributes={name: value for name, value in known.items() if value},
        kind=SpanKind.SERVER,
        status=Status(StatusCode.ERROR if error or status >= 500 else StatusCode.UNSET),
        start_time=start,
        end_time=time.time_ns(),
    )


def _select(attributes: Any) -> dict[str, Any]:
    return {name: value for name, value in (attributes or {}).items() if name in ALLOWED}


def _draw_id(bits: int) -> int:
    return random.getrandbits(bits) or 1
