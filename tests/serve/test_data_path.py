"""`serve.dataPath`: the configuration of chart ray-service in real Ray Serve, with vLLM and a tiny model. What rayhelm
promises of a request holds on each way, or the README of the chart says where it does not."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from typing import Any

import httpx
import psutil
import pytest

from charts.kit import chat, over, ray_service, serve_config
from rayhelm import processes
from rayhelm.run.local.config import set_listen_address
from rayhelm.run.local.data_path import read_data_path
from rayhelm.run.local.serve import up
from rayhelm.run.local.state import EndpointModel, EndpointState
from rayhelm.run.standin.adapters import ADAPTERS, RANK, write_adapters
from rayhelm.run.standin.checkpoint import write_checkpoint

pytestmark = [pytest.mark.serve, pytest.mark.timeout(1800)]

MODEL, FAMILY, ADAPTER = "llama-8b", "LlamaForCausalLM", "sql"
TIMEOUT = 900.0
"""Seconds for a busy computer."""
RELEASE = over(
    chat(
        revision="",
        engine={
            "maxModelLen": 2048,
            "maxNumSeqs": 64,
            "maxNumBatchedTokens": 2048,
            "dtype": "float32",
            "enforceEager": True,
            "loadFormat": "dummy",
            "extra": {"kv_cache_memory_bytes": 2**27},
        },
        accelerator={"kind": "cpu"},
        workerGroups=[],
        autoscaling={"targetOngoingRequests": 32, "maxReplicas": 1},
    ),
    {
        "image": {"repository": "registry.example/ray-llm", "includesRayhelm": True},
        "workerGroups": {"gpu": {"gpu": {"count": 0}}},
        "weights": {"enabled": False},
        "serve": {"logging": {"accessLog": True}},
    },
)


@dataclass(frozen=True)
class Served:
    """A running Ray Serve."""

    http: httpx.Client
    metrics: httpx.Client
    state: EndpointState
    names: Iterator[str]

    def send(self, path: str = "/v1/chat/completions", **body: Any) -> tuple[str, httpx.Response]:
        """Return the id of the request, and the response."""
        name = next(self.names)
        headers = {"x-request-id": name, "x-rayhelm-tenant": "acme"}
        content = {"model": MODEL, "messages": [{"role": "user", "content": "a"}], "max_tokens": 4, "ignore_eos": True}
        return name, self.http.post(path, json={**content, **body}, headers=headers)

    def engine_line(self, request_id: str) -> dict[str, Any] | None:
        """The line of the engine's log for a request, when it is written."""
        for file in self.state.session.glob("session_latest/logs/serve/*.log"):
            for line in file.read_text(errors="replace").splitlines():
                if "engine request ended" in line and (found := json.loads(line))["request_id"] == request_id:
                    return dict(found)
        return None

    def series(self, name: str) -> list[str]:
        return [line for line in self.metrics.get("/metrics").text.splitlines() if line.startswith(f"{name}{{")]


@pytest.fixture(scope="module", params=["HAProxy", "Direct"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    state, taken = EndpointState(tmp_path_factory.mktemp("state")), set[int]()
    port = processes.find_free_port(taken)
    model = write_checkpoint(FAMILY, state.stand_ins)
    write_adapters(FAMILY, model)
    lora = {"adapters": {ADAPTER: {"source": str(model / ADAPTERS / "0")}}, "slots": 1, "maxRank": RANK}
    values = over(over(RELEASE, chat(source=str(model), lora=lora)), {"serve": {"dataPath": request.param}})
    config = set_listen_address(serve_config(values), port)
    with ExitStack() as stack:
        stack.callback(state.clear)
        stack.callback(processes.stop_run, state.run, grace=1)
        models = [EndpointModel(model=MODEL, task="chat", prefix="/chat")]
        path = read_data_path(ray_service(values))
        endpoint = up(config, models, state, stand_in=True, share_imports=True, data_path=path)
        http, metrics = (
            stack.enter_context(httpx.Client(base_url=url, trust_env=False, timeout=TIMEOUT))
            for url in (f"{endpoint.serve_url}/chat", find_metrics(state))
        )
        yield Served(http, metrics, state, (f"request-{number}" for number in count()))


@pytest.fixture
def path(served: Served, request: pytest.FixtureRequest) -> str:
    return str(request.node.callspec.params["served"])


def find_metrics(state: EndpointState) -> str:
    """The address at which Ray exports metrics."""
    words = [word for process in processes.list_members(state.run) for word in processes.read_command(process)]
    return f"http://127.0.0.1:{words[words.index('--metrics-export-port') + 1]}"


def test_engine_logs_id_and_tenant_of_a_request(served: Served) -> None:
    name, answer = served.send()
    assert answer.raise_for_status().headers["x-request-id"] == name
    line = processes.wait_until(lambda: served.engine_line(name), what="the line of the engine", timeout=TIMEOUT)
    assert (line["tenant"], line["generation_tokens"]) == ("acme", 4)


def test_tokens_count_for_the_tenant(served: Served) -> None:
    served.send(max_tokens=7)

    def counted() -> bool | None:
        series = served.series("ray_rayhelm_generation_tokens_total")
        return any('tenant="acme"' in each and float(each.split()[-1]) >= 7 for each in series) or None

    processes.wait_until(counted, what="tokens of the tenant", timeout=TIMEOUT)


def test_adapter_answers_by_its_name(served: Served) -> None:
    assert served.send(model=ADAPTER)[1].raise_for_status().json()["model"] == ADAPTER


def test_unknown_model_is_not_found(served: Served, path: str) -> None:
    """Ray's ingress answers in a form that clients of OpenAI's API do not read, and vLLM in theirs."""
    answer = served.send(model="other")[1]
    assert (answer.status_code, set(answer.json())) == (404, {"error" if path == "Direct" else "detail"})


def test_stream_arrives_in_parts_and_ends(served: Served) -> None:
    lines = served.send(stream=True)[1].raise_for_status().text.split("\n\n")
    assert len([line for line in lines if line.startswith("data: {")]) >= 4
    assert lines[-2:] == ["data: [DONE]", ""]


@pytest.mark.parametrize(
    "name", ["ray_serve_num_http_requests_total", "ray_serve_http_request_latency_ms_count", "ray_serve_proxy_status"]
)
def test_serve_exports_what_dashboards_read_of_http(served: Served, name: str) -> None:
    served.send()
    wanted = 'application="chat"' if "proxy" not in name else ""
    found = processes.wait_until(
        lambda: [each for each in served.series(name) if wanted in each] or None, what=name, timeout=TIMEOUT
    )
    assert found


def test_direct_path_has_further_routes_of_vllm(served: Served, path: str) -> None:
    answers = [
        served.send("/v1/responses", input="a", max_output_tokens=16)[1].status_code,
        served.send("/v1/messages")[1].status_code,
    ]
    assert answers == [200 if path == "Direct" else 404] * 2


def test_broken_engine_ends_a_stream_with_an_error(served: Served) -> None:
    """The last test: Serve starts another replica afterwards."""
    body = {"model": MODEL, "prompt": "a", "max_tokens": 2000, "ignore_eos": True, "stream": True, "n": 32}
    (engine,) = (each for each in processes.list_members(served.state.run) if is_engine(each))
    text = ""
    with served.http.stream("POST", "/v1/completions", json=body) as answer:
        for number, line in enumerate(answer.iter_lines()):
            text = line or text if '"error"' not in text else text
            if number == 20:
                os.kill(engine.pid, signal.SIGKILL)
    assert '"error"' in text


def is_engine(process: psutil.Process) -> bool:
    try:
        return "VLLM::EngineCore" in " ".join((process.name(), *process.cmdline()))
    except psutil.Error:
        return False
