"""Data path `Direct` with rayhelm's router by load: several replicas, and none. Real Ray Serve and vLLM with a tiny
model."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from charts.kit import over
from rayhelm import processes
from rayhelm.run.local.state import EndpointState
from rayhelm.run.standin.checkpoint import write_checkpoint
from serve.kit import MODEL, RELEASE, TIMEOUT, TINY, Served, serve

pytestmark = [pytest.mark.serve, pytest.mark.timeout(1800)]
REPLICAS = {"chat": 0, "even": 2}
"""`chat` scales to zero."""
STREAMS, COPIES = 8, 8
"""As many sequences as the engine runs at once, so each stream begins."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    state = EndpointState(tmp_path_factory.mktemp("state"))
    model = over(TINY, {"source": str(write_checkpoint("LlamaForCausalLM", state.stand_ins))})
    applications: dict[str, Any] = {
        name: {"routePrefix": f"/{name}", "models": {MODEL: over(model, {"autoscaling": scale(replicas)})}}
        for name, replicas in REPLICAS.items()
    }
    with serve(over(RELEASE, {"serve": {"applications": applications}}), "Direct", state) as served:
        yield served


def scale(replicas: int) -> dict[str, int]:
    return {
        "minReplicas": replicas,
        "maxReplicas": max(replicas, 1),
        "targetOngoingRequests": 64,
        "downscaleDelaySeconds": 1,
        "lookBackPeriodSeconds": 11,
    }


def send(served: Served, application: str) -> str:
    """Send a request to an application, and return its id."""
    name, answer = served.send(f"http://127.0.0.1:{served.http.base_url.port}/{application}/v1/chat/completions")
    answer.raise_for_status()
    return name


def await_engine_file(served: Served, name: str) -> str:
    return processes.wait_until(lambda: served.engine_file(name), what="a line", timeout=TIMEOUT)


def find_replica(served: Served, application: str) -> str:
    """URL of a replica. Ray's HAProxy has it in its configuration."""
    (file,) = (served.state.session / "hap").rglob("haproxy.cfg")
    pattern = rf"server SERVE_REPLICA_{application}-\S+ (\S+) check"
    return f"http://{re.findall(pattern, file.read_text())[0]}/{application}"


def list_states(served: Served) -> dict[str, str]:
    return {each["replica_id"]: each["state"] for each in served.list_replicas("chat")}


def test_requests_reach_the_replica_with_the_shorter_queue(served: Served) -> None:
    """A client opens streams at one replica itself."""
    busy = find_replica(served, "even")
    body = {"model": MODEL, "prompt": "a", "max_tokens": 2000, "ignore_eos": True, "stream": True, "n": COPIES}
    with ExitStack() as stack:
        answers = [
            stack.enter_context(served.http.stream("POST", f"{busy}/v1/completions", json=body)) for _ in range(STREAMS)
        ]
        # An iterator that is dropped closes its stream.
        streams = [answer.iter_lines() for answer in answers]
        assert all(next(lines).startswith("data: ") for lines in streams)
        names = [send(served, "even") for _ in range(STREAMS - 2)]
    elsewhere = {await_engine_file(served, name) for name in names}
    name, answer = served.send(f"{busy}/v1/chat/completions")
    answer.raise_for_status()
    assert len(elsewhere) == 1
    assert await_engine_file(served, name) not in elsewhere


def test_request_that_meets_the_stop_of_the_last_replica_starts_another(served: Served) -> None:
    before = send(served, "chat")
    (first,) = list_states(served)
    processes.wait_until(lambda: list_states(served).get(first) == "STOPPING" or None, what="the stop", timeout=TIMEOUT)
    after = send(served, "chat")
    assert await_engine_file(served, after) != await_engine_file(served, before)
