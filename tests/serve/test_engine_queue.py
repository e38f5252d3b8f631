"""The policy EngineQueue in a real Ray Serve: its controller imports it, finds its cluster's name, and scales by it."""

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from rayhelm.processes import create_run_id, start, stop_run, wait_until

pytestmark = [pytest.mark.serve, pytest.mark.timeout(1800)]

PROGRAM = """
import json, sys, threading, time
import ray
from ray import serve

url, output = sys.argv[1:]
ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, configure_logging=False)


@serve.deployment(
    ray_actor_options={"num_cpus": 0.1},
    max_ongoing_requests=8,
    autoscaling_config={
        "min_replicas": 1, "max_replicas": 3, "target_ongoing_requests": 4, "upscale_delay_s": 0,
        "look_back_period_s": 11,
        "policy": {
            "policy_function": "rayhelm.runtime.engine_queue.policy:EngineQueuePolicy",
            "policy_kwargs": {"prometheus_address": url, "ttft_s": 1.0, "fetch_interval_s": 0.5},
        },
    },
)
class Slow:
    async def __call__(self):
        import asyncio

        await asyncio.sleep(600)


handle = serve.run(Slow.bind(), name="app", route_prefix=None)
waiting = [handle.remote() for _ in range(8)]
while True:
    status = serve.status().applications["app"].deployments["Slow"]
    running = status.replica_states.get("RUNNING", 0)
    with open(output, "w") as file:
        json.dump({"session": ray.get_runtime_context().get_session_name(), "running": running}, file)
    time.sleep(0.5)
"""


@pytest.fixture
def prometheus() -> Iterator[tuple[str, list[str]]]:
    """Takes every query, notes it, and knows nothing but that the cluster is there."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            (query,) = parse_qs(urlsplit(self.path).query)["query"]
            asked.append(query)
            result = [{"metric": {}, "value": [0, "1"]}] if query.startswith("count(") else []
            answer = {"status": "success", "data": {"resultType": "vector", "result": result}}
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def test_serve_controller_scales_with_the_policy(prometheus: tuple[str, list[str]], tmp_path: Path) -> None:
    url, asked = prometheus
    output, run = tmp_path / "output.json", create_run_id()

    def grown() -> str | None:
        """The cluster's name, once eight requests have got two replicas for four each."""
        try:
            state = json.loads(output.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return str(state["session"]) if state["running"] == 2 and len(asked) >= 3 else None

    try:
        process = start([sys.executable, "-c", PROGRAM, url, str(output)], run=run, log=tmp_path / "log")
        session = wait_until(grown, what="a second replica", timeout=1500, needs=[process])
    finally:
        stop_run(run)
    assert session.startswith("session_")
    assert {query.partition("SessionName=")[2].split('"')[1] for query in asked} == {session}
