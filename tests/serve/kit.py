"""Real Ray Serve with vLLM and a tiny model, from the configuration of chart ray-service."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx

from charts.kit import over, ray_service, serve_config
from rayhelm import processes
from rayhelm.run.local.config import set_listen_address
from rayhelm.run.local.data_path import read_data_path
from rayhelm.run.local.serve import up
from rayhelm.run.local.state import EndpointModel, EndpointState

__all__ = ["MODEL", "RELEASE", "TIMEOUT", "TINY", "Served", "serve"]

MODEL = "llama-8b"
TIMEOUT = 900.0
"""Seconds for a busy computer."""
TINY = {
    "revision": "",
    "engine": {
        "maxModelLen": 2048,
        "maxNumSeqs": 64,
        "maxNumBatchedTokens": 2048,
        "dtype": "float32",
        "enforceEager": True,
        "loadFormat": "dummy",
        "extra": {"kv_cache_memory_bytes": 2**27},
    },
    "accelerator": {"kind": "cpu"},
    "workerGroups": [],
    "gracefulShutdownSeconds": 120,
}
"""A model of chart ray-service without weights, on CPUs."""
RELEASE = {
    "image": {"repository": "registry.example/ray-llm", "includesRayhelm": True},
    "workerGroups": {"gpu": {"gpu": {"count": 0}}},
    "weights": {"enabled": False},
    "serve": {"logging": {"accessLog": True}},
}


@dataclass(frozen=True)
class Served:
    """A running Ray Serve."""

    http: httpx.Client
    """At the path of the application `chat`."""
    metrics: httpx.Client
    dashboard: httpx.Client
    state: EndpointState
    config: Mapping[str, Any]
    """What it serves."""
    path: str
    names: Iterator[str] = field(default_factory=lambda: (f"request-{number}" for number in count()))

    def send(self, path: str = "/v1/chat/completions", **body: Any) -> tuple[str, httpx.Response]:
        """Return the id of the request, and the response."""
        name = next(self.names)
        headers = {"x-request-id": name, "x-rayhelm-tenant": "acme"}
        content = {"model": MODEL, "messages": [{"role": "user", "content": "a"}], "max_tokens": 4, "ignore_eos": True}
        return name, self.http.post(path, json={**content, **body}, headers=headers)

    def engine_line(self, request_id: str) -> dict[str, Any] | None:
        """The line of the engine's log for a request, when it is written."""
        return next((line for _, line in self._list_engine_lines() if line["request_id"] == request_id), None)

    def engine_file(self, request_id: str) -> str | None:
        """The log, which is that of one replica."""
        return next((name for name, line in self._list_engine_lines() if line["request_id"] == request_id), None)

    def _list_engine_lines(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for file in self.state.session.glob("session_latest/logs/serve/*.log"):
            for line in file.read_text(errors="replace").splitlines():
                if "engine request ended" in line:
                    yield file.name, json.loads(line)

    def list_applications(self) -> dict[str, Any]:
        """The applications as Ray's API has them. While Serve replaces replicas this API can answer 500."""

        def ask() -> dict[str, Any] | None:
            answer = self.dashboard.get("/api/serve/applications/")
            return answer.json()["applications"] if answer.is_success else None

        return processes.wait_until(ask, what="an answer of Ray's API", timeout=TIMEOUT)

    def list_replicas(self, application: str = "chat") -> list[dict[str, Any]]:
        """Replicas of the model in any state. An application that Serve builds has no deployments yet."""
        deployments = self.list_applications()[application]["deployments"]
        found = (deployment for name, deployment in deployments.items() if name.startswith("LLMServer"))
        return [replica for deployment in found for replica in deployment["replicas"]]

    def count_replicas(self, application: str = "chat") -> int:
        return len(self.list_replicas(application))

    def series(self, name: str) -> list[str]:
        return [line for line in self.metrics.get("/metrics").text.splitlines() if line.startswith(f"{name}{{")]


@contextmanager
def serve(values: Mapping[str, Any], path: str, state: EndpointState) -> Iterator[Served]:
    """Start Ray Serve with these values of chart ray-service on one data path, and stop it."""
    values = over(dict(values), {"serve": {"dataPath": path}})
    config = set_listen_address(serve_config(values), processes.find_free_port(set()))
    for router in (each for application in config["applications"] for each in application.get("deployments", ())):
        # A busy computer may take more than the chart's 10 s until HAProxy asks the next router.
        router["graceful_shutdown_wait_loop_s"] = 60
    routes = [
        each["route_prefix"] for each in config["applications"] if each["import_path"].startswith("ray.serve.llm:")
    ]
    models = [EndpointModel(model=MODEL, task="chat", prefix=route) for route in routes]
    variables = read_data_path(ray_service(values))
    with ExitStack() as stack:
        stack.callback(state.clear)
        stack.callback(processes.stop_run, state.run, grace=1)
        endpoint = up(config, models, state, stand_in=True, share_imports=True, data_path=variables)
        token = {"authorization": f"Bearer {state.token.read_text()}"}
        http, metrics, dashboard = (
            stack.enter_context(httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=TIMEOUT))
            for url, headers in (
                (f"{endpoint.serve_url}{routes[0]}", {}),
                (_find_metrics(state), {}),
                (f"http://127.0.0.1:{endpoint.dashboard}", token),
            )
        )
        yield Served(http, metrics, dashboard, state, config, path)


def _find_metrics(state: EndpointState) -> str:
    """The address at which Ray exports metrics."""
    words = [word for process in processes.list_members(state.run) for word in processes.read_command(process)]
    return f"http://127.0.0.1:{words[words.index('--metrics-export-port') + 1]}"
