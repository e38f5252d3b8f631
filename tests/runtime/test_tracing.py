"""Traces in Serve: the decision about a request, the first span, and attributes without text."""

import asyncio
import logging
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import pytest

from rayhelm.runtime import tracing
from rayhelm.runtime.tracing import TraceMiddleware, decide, remove_text
from shared.log_records import capture_records

TRACE, SPAN = "1" * 32, "2" * 16
PROMPT = "the-secret-of-the-prompt"
PATH = "/chat/v1/chat/completions"


def parent(flags: str = "01", trace: str = TRACE, span: str = SPAN) -> tuple[bytes, bytes]:
    return b"traceparent", f"00-{trace}-{span}-{flags}".encode()


class Processor:
    """Keeps spans in place of the exporter."""

    def __init__(self) -> None:
        self.spans: list[Any] = []

    def on_end(self, span: Any) -> None:
        self.spans.append(span)


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    processor = Processor()
    monkeypatch.setattr(tracing, "_processor", lambda: processor)
    monkeypatch.setenv("RAYHELM_TRACING_RATIO", "0")
    return processor.spans


def through(
    *headers: tuple[bytes, bytes], path: str = PATH, status: int = 200, error: BaseException | None = None
) -> dict[bytes, bytes]:
    """Send a request through the middleware and return the headers that the application gets."""
    received: dict[bytes, bytes] = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        received.update(scope["headers"])
        await send({"type": "http.response.start", "status": status, "headers": []})
        if error:
            raise error

    async def receive() -> Any:
        raise AssertionError("receive is not called")

    async def send(message: Any) -> None:
        pass

    scope = {"type": "http", "method": "POST", "path": path, "headers": [(b"x-request-id", b"id"), *headers]}
    asyncio.run(TraceMiddleware(app)(scope, receive, send))
    return received


def test_sampled_parent_decides() -> None:
    found = decide([parent()], ratio=0)
    assert (found.trace_id, found.parent_id, found.is_sampled) == (int(TRACE, 16), int(SPAN, 16), True)


def test_parent_that_is_not_sampled_decides() -> None:
    assert not decide([parent("00")], ratio=1).is_sampled


@pytest.mark.parametrize(
    "header", [parent(trace="0" * 32), parent(span="0" * 16), (b"traceparent", b"00-xyz"), parent("1")]
)
def test_invalid_parent_is_ignored(header: tuple[bytes, bytes]) -> None:
    found = decide([header], ratio=1)
    assert found.parent_id == 0
    assert found.is_sampled
    assert found.trace_id not in (0, int(TRACE, 16))


def test_ratio_is_a_share_of_the_requests_without_parent() -> None:
    """A count outside of these bounds has a probability below 1e-20."""
    counts = Counter(decide([], ratio=0.5).is_sampled for _ in range(1000))
    assert 300 < counts[True] < 700


def test_trace_of_the_gateway_has_no_span_above(exported: list[Any]) -> None:
    through(parent(), (b"x-rayhelm-new-trace", b"1"), (b"x-rayhelm-tenant", b"acme"))
    (span,) = exported
    assert span.parent is None
    assert span.context.trace_id == int(TRACE, 16)
    assert dict(span.attributes) == {
        "tenant": "acme",
        "request_id": "id",
        "http.request.method": "POST",
        "http.route": PATH,
        "http.response.status_code": 200,
    }


def test_application_continues_the_first_span(exported: list[Any]) -> None:
    found = through(parent(), (b"x-rayhelm-new-trace", b"1"))
    (span,) = exported
    assert found[b"traceparent"] == f"00-{TRACE}-{span.context.span_id:016x}-01".encode()
    assert b"x-rayhelm-new-trace" not in found
    assert found[b"x-request-id"] == b"id"


def test_request_that_is_not_sampled_has_no_span(exported: list[Any]) -> None:
    assert through()[b"traceparent"].endswith(b"-00")
    assert through(parent("00"))[b"traceparent"].startswith(f"00-{TRACE}-".encode())
    assert exported == []


def test_health_check_has_no_span(exported: list[Any]) -> None:
    assert b"traceparent" not in through(path="/-/healthz")
    assert exported == []


def test_span_of_a_failure_has_the_class_of_the_error_only(exported: list[Any]) -> None:
    with pytest.raises(ConnectionError):
        through(parent(), error=ConnectionError(PROMPT))
    (span,) = exported
    assert span.attributes["error.type"] == "ConnectionError"
    assert span.status.status_code.name == "ERROR"
    assert PROMPT not in span.to_json()


def test_exported_span_has_no_text_of_a_client() -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Status, StatusCode

    span = TracerProvider().get_tracer("test").start_span("llm_request")
    span.set_attributes({"gen_ai.usage.prompt_tokens": 7, "gen_ai.prompt": PROMPT, "multiplexed_model_id": PROMPT})
    span.record_exception(ValueError(PROMPT))
    span.set_status(Status(StatusCode.ERROR, PROMPT))
    span.end()
    assert PROMPT in span.to_json()  # type: ignore[attr-defined]
    found = remove_text(span)
    assert PROMPT not in found.to_json()
    assert dict(found.attributes) == {"gen_ai.usage.prompt_tokens": 7}
    assert dict(found.events[0].attributes)["exception.type"] == "ValueError"
    assert found.status.status_code is StatusCode.ERROR


@pytest.mark.parametrize("missing", ["endpoint", "package"])
def test_requests_are_answered_when_there_is_no_exporter(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing == "package":
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1")
        monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.grpc.trace_exporter", None)
    else:
        monkeypatch.delenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", raising=False)
    monkeypatch.setattr(tracing, "_processor", cache(tracing._processor.__wrapped__))
    with capture_records("ray.serve", logging.WARNING) as records:
        (processor,) = tracing.span_processors()
        assert through(parent())[b"traceparent"].endswith(b"-01")
        assert processor.force_flush()
    assert any("no traces are sent" in record.getMessage() for record in records)


def test_request_does_not_wait_for_a_collector_that_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """The spans wait in a queue; without that, the first request would wait for the connection to fail."""
    exporting = threading.Event()
    exported = threading.Event()

    class Slow:
        def export(self, spans: Any) -> Any:
            exporting.set()
            assert exported.wait(300)

        def shutdown(self) -> None:
            pass

    monkeypatch.setattr(tracing, "_create_exporter", Slow)
    monkeypatch.setattr(tracing, "_processor", cache(tracing._processor.__wrapped__))
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
    (processor,) = tracing.span_processors()
    through(parent())
    assert exporting.wait(300)
    through(parent())
    exported.set()
    processor.shutdown()


def test_exporter_sends_spans_over_grpc(monkeypatch: pytest.MonkeyPatch) -> None:
    import grpc
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExportResult

    received: list[Any] = []

    class Service(trace_service_pb2_grpc.TraceServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:
            received.append(request)
            return trace_service_pb2.ExportTraceServiceResponse()

    server = grpc.server(ThreadPoolExecutor(1))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(Service(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc")
        span = TracerProvider().get_tracer("test").start_span("llm_request")
        span.end()
        exporter = tracing._create_exporter()
        assert exporter.export([remove_text(span)]) is SpanExportResult.SUCCESS
        exporter.shutdown()
    finally:
        server.stop(None)
    assert received[0].resource_spans[0].scope_spans[0].spans[0].name == "llm_request"
