"""A process that takes logs over OTLP/HTTP, as Loki and collectors do: `python -m testbed.log_sink`

It prints its URL, then each record that it gets as a line of JSON, to stdout.
"""

import gzip
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse

__all__ = ["read_records"]


def read_records(body: bytes) -> Iterator[dict[str, Any]]:
    """Return the records of a request: `resource` and `attributes` by name, `body`, `severity`, `time` in ns."""
    for part in ExportLogsServiceRequest.FromString(body).resource_logs:
        for scope in part.scope_logs:
            for record in scope.log_records:
                yield {
                    "resource": _read_attributes(part.resource.attributes),
                    "attributes": _read_attributes(record.attributes),
                    "body": record.body.string_value,
                    "severity": record.severity_text,
                    "time": record.time_unix_nano,
                }


def _read_attributes(attributes: Any) -> dict[str, str]:
    return {item.key: item.value.string_value for item in attributes}


_LOCK = Lock()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        lines = [json.dumps({"path": self.path, **record}) + "\n" for record in read_records(body)]
        with _LOCK:  # each request has a thread of its own
            print("".join(lines), end="", flush=True)
        answer = ExportLogsServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
