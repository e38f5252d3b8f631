"""A Prometheus over HTTP that has what a test writes down about two versions of a model."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

__all__ = ["FLEET", "MORE", "PrometheusOfVersions", "Requests"]

FLEET = """\
# The fleet of a team.
fleet: small
clusters:
  main: {apiServer: {cidrs: [10.0.0.1/32]}}
pools:
  gpu: {gpu: L4-24GB, nodes: 4}
models:
  chat:                    # clients send this name
    source: Qwen/Qwen2.5-7B-Instruct
    unpinnedReason: weights of a test
    context: 4096
    slo: {ttft: 1s}
  chat-next:
    source: Qwen/Qwen3-8B
    unpinnedReason: weights of a test
    context: 4096
    servedAs: {model: chat, version: next, weight: 5}   # raised by `rayhelm promote`
tenants:
  apps: {models: [chat]}
"""
MORE = """\
  chat-more:
    source: Qwen/Qwen2.5-7B-Instruct
    unpinnedReason: weights of a test
    context: 4096
    servedAs: {model: chat}
"""
GATEWAY = {"namespace": "gateway", "rayhelm_dev_gateway": "gateway"}


@dataclass
class Requests:
    """Requests of one version."""

    responses: int
    server_errors: int = 0
    engine_errors: int = 0
    late: int = 0
    """First tokens after a second."""
    is_scraped: bool = True
    """Prometheus has the series of the engines."""


@dataclass
class PrometheusOfVersions:
    """Answers of the HTTP API."""

    new: Requests
    present: Requests
    namespace: str = "models"
    name: str = "chat"
    services: dict[str, str] = field(default_factory=lambda: {"next": "chat-next", "stable": "chat"})
    endpoints: int | None = 1
    """Of the new version; None: the gateway does not have it."""
    missing: range = range(0)
    """Minutes of the period without data."""
    has_gateway: bool = True
    answer: Any = None
    """Data of every answer, in place of the series."""
    asked: list[str] = field(default_factory=list)

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Yield the URL."""
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = {key: values[0] for key, values in parse_qs(self.rfile.read(self._length()).decode()).items()}
                data = (
                    {"resultType": "matrix", "result": list(fake._find(form))} if fake.answer is None else fake.answer
                )
                answer = {"status": "success", "data": data}
                body = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _length(self) -> int:
                return int(self.headers["Content-Length"])

            def log_message(self, *_: Any) -> None:
                return

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def _find(self, form: dict[str, str]) -> Iterator[dict[str, Any]]:
        query, start, end, step = form["query"], *(float(form[key]) for key in ("start", "end", "step"))
        self.asked.append(query)
        moments = [start + number * step for number in range(int((end - start) / step) + 1)]
        for number, (labels, value) in enumerate(self._list_series(query)):
            # A period has the gap; the moment of the counts does not.
            kept = [at for index, at in enumerate(moments) if start == end or index not in self.missing]
            assert number < 100
            yield {"metric": labels, "values": [[at, str(value)] for at in kept]}

    def _list_series(self, query: str) -> Iterator[tuple[dict[str, str], float]]:
        for version, requests in (("next", self.new), ("stable", self.present)):
            proxy = {**GATEWAY, "proxy": f"{self.name}:{version}"}
            if self.has_gateway and (version == "stable" or self.endpoints is not None):
                yield from self._list_of_gateway(query, proxy, version, requests)
            engine = {
                "namespace": self.namespace,
                "rayhelm_dev_service": self.services[version],
                "model_name": self.name,
            }
            if requests.is_scraped and requests.responses:
                yield from self._list_of_engine(query, engine, requests)

    def _list_of_gateway(
        self, query: str, labels: dict[str, str], version: str, requests: Requests
    ) -> Iterator[tuple[dict[str, str], float]]:
        if "haproxy_backend_active_servers" in query:
            yield labels, (self.endpoints or 0) if version == "next" else 2
        if "haproxy_backend_http_responses_total" in query:
            yield {**labels, "code": "2xx"}, requests.responses - requests.server_errors + 0.2
            yield {**labels, "code": "5xx"}, requests.server_errors

    def _list_of_engine(
        self, query: str, labels: dict[str, str], requests: Requests
    ) -> Iterator[tuple[dict[str, str], float]]:
        total = requests.responses - requests.server_errors
        if "ray_vllm_request_success_total" in query:
            yield {**labels, "finished_reason": "stop"}, total - requests.engine_errors
            yield {**labels, "finished_reason": "error"}, requests.engine_errors
        if "time_to_first_token" in query:
            for bound, count in (("0.5", total - requests.late), ("1.0", total - requests.late), ("+Inf", total)):
                yield {**labels, "le": bound}, count
