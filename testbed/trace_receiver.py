"""An OTLP receiver over HTTP that keeps the spans it gets."""

import gzip
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

__all__ = ["Span", "TraceReceiver", "receive_traces"]


@dataclass(frozen=True)
class Span:
    """A span as it was received. Ids are in hex."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    """Empty for the first span of a trace."""
    attributes: dict[str, Any]
    resource: dict[str, Any]
    raw: bytes = field(repr=False)
    """The whole span as bytes, events and status included."""
    is_error: bool = False


class TraceReceiver:
    """The spans that arrived so far."""

    def __init__(self) -> None:
        self.url = ""
        self._spans: list[Span] = []
        self._lock = Lock()

    @property
    def spans(self) -> list[Span]:
        with self._lock:
            return list(self._spans)

    def add(self, body: bytes) -> None:
        """Add the spans of a request."""
        request = ExportTraceServiceRequest.FromString(body)
        found = [
            Span(
                name=span.name,
                trace_id=span.trace_id.hex(),
                span_id=span.span_id.hex(),
                parent_id=span.parent_span_id.hex(),
                attributes=_read(span.attributes),
                resource=_read(part.resource.attributes),
                raw=span.SerializeToString(),
                is_error=span.status.code == span.status.STATUS_CODE_ERROR,
            )
            for part in request.resource_spans
            for scope in part.scope_spans
            for span in scope.spans
        ]
        with self._lock:
            self._spans += found

    def wait_for(self, is_enough: Callable[[list[Span]], bool], seconds: float = 120) -> list[Span]:
        """Return the spans once they are enough, or all spans after `seconds`."""
        deadline = time.monotonic() + seconds
        while not is_enough(self.spans) and time.monotonic() < deadline:
            time.sleep(0.2)
        return self.spans


@contextmanager
def receive_traces() -> Iterator[TraceReceiver]:
    """Receive traces on a free port of 127.0.0.1."""
    receiver = TraceReceiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.add(gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()


def _read(attributes: Any) -> dict[str, Any]:
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in attributes}
