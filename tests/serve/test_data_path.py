"""`serve.dataPath`: the configuration of chart ray-service in real Ray Serve, with vLLM and a tiny model. What rayhelm
promises of a request holds on each way, or the README of the chart says where it does not."""

import os
import re
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import anthropic
import openai
import psutil
import pytest

from charts.kit import chat, over
from gateway.kit import model, start_gateway, tenant
from gateway.kit.process import GatewayProcess
from rayhelm import processes
from rayhelm.run.local.state import EndpointState
from rayhelm.run.standin.adapters import ADAPTERS, RANK, write_adapters
from rayhelm.run.standin.checkpoint import write_checkpoint
from serve.kit import MODEL, RELEASE, TIMEOUT, TINY, Served, serve

pytestmark = [pytest.mark.serve, pytest.mark.timeout(1800)]

FAMILY, ADAPTER = "LlamaForCausalLM", "sql"
AUTOSCALING = {
    "targetOngoingRequests": 2,
    "maxReplicas": 2,
    "upscaleDelaySeconds": 1,
    "downscaleDelaySeconds": 1,
    "lookBackPeriodSeconds": 11,
}


@pytest.fixture(scope="module", params=["HAProxy", "Direct"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    state = EndpointState(tmp_path_factory.mktemp("state"))
    source = write_checkpoint(FAMILY, state.stand_ins)
    write_adapters(FAMILY, source)
    lora = {"adapters": {ADAPTER: {"source": str(source / ADAPTERS / "0")}}, "slots": 1, "maxRank": RANK}
    model = over(TINY, {"source": str(source), "lora": lora, "autoscaling": AUTOSCALING})
    own = {"serve": {"customApplications": {"echo": {"importPath": "echo_over_tls:app", "routePrefix": "/echo"}}}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent / "tls_app"))
        with serve(over(over(RELEASE, own), chat(**model)), request.param, state) as served:
            yield served


PAGE = Path(__file__).parents[2] / "docs/tasks/call-a-model.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def gateway(served: Served) -> Iterator[GatewayProcess]:
    """The gateway before it. Two tenants share the model, so it sets the salt of the prefix cache."""
    ray: Any = SimpleNamespace(name="ray", port=served.http.base_url.port)
    values = {
        "tenants": {
            "acme": tenant("acme", [MODEL], tokensPerMinute=10**9, maxOutputTokens={MODEL: 64}),
            "search": tenant("search", [MODEL]),
        },
        "models": {MODEL: model(ray, route="/chat", dataPath=served.path, contextTokens=2048)},
        "validation": {"enabled": True},
    }
    with start_gateway(values) as gateway:
        yield gateway


@pytest.fixture
def path(served: Served) -> str:
    return served.path


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


def test_application_without_vllm_answers_below_its_path(served: Served) -> None:
    url = f"http://127.0.0.1:{served.http.base_url.port}/echo/"
    assert served.http.post(url, json={"a": 1}).raise_for_status().json()["body"] == {"a": 1}


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


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_lines_of_the_page_call_the_model(
    gateway: GatewayProcess, path: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"http://127.0.0.1:{gateway.port}"
    for name, value in {"GATEWAY": url, "KEY": "acme-key", "MODEL": MODEL, "NO_PROXY": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    if number == 0 or path == "Direct":
        exec(BLOCKS[number], {})
        return
    with pytest.raises((openai.NotFoundError, anthropic.NotFoundError), match="data path Direct"):
        exec(BLOCKS[number], {})


API = [
    ("/v1/responses", {"input": "a", "max_output_tokens": 16}, ("input_tokens", "output_tokens")),
    (
        "/v1/messages",
        {"messages": [{"role": "user", "content": "a"}], "max_tokens": 16},
        ("input_tokens", "output_tokens"),
    ),
    ("/v1/completions", {"prompt": "a", "max_tokens": 16}, ("prompt_tokens", "completion_tokens")),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("url", "body", "names"), API)
def test_gateway_counts_the_tokens_of_each_family(
    served: Served, gateway: GatewayProcess, path: str, url: str, body: dict[str, Any], names: Any, stream: bool
) -> None:
    name = next(served.names)
    more = {"stream": True} if stream else {}
    answer = gateway.request(url, {"model": MODEL, **body, **more}, headers=[("x-request-id", name)])
    if path != "Direct" and url != "/v1/completions":
        assert (answer.status, answer.error["code"]) == (404, "operation_not_served")
        return
    assert answer.status == 200, answer.body
    line = processes.wait_until(lambda: served.engine_line(name), what="the line of the engine", timeout=TIMEOUT)
    assert line["tenant"] == "acme"
    if not stream:
        used = answer.json()["usage"]
        assert sum(used[each] for each in names) == int(gateway.log_entry(name)["tokens"])
    assert int(gateway.log_entry(name)["tokens"]) == line["prompt_tokens"] + line["generation_tokens"]


@pytest.mark.parametrize(
    ("url", "body", "code"),
    [
        ("/v1/responses", {"input": "a", "previous_response_id": "resp_1"}, "state_not_supported"),
        ("/v1/responses", {"input": "a", "max_output_tokens": 65}, "max_tokens_exceeded"),
        ("/v1/messages", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 65}, "max_tokens_exceeded"),
    ],
)
def test_bounds_hold_for_each_family(gateway: GatewayProcess, path: str, url: str, body: Any, code: str) -> None:
    answer = gateway.request(url, {"model": MODEL, **body})
    wanted = (400, code) if path == "Direct" else (404, "operation_not_served")
    assert (answer.status, answer.error["code"]) == wanted


def test_errors_of_the_gateway_are_those_of_both_clients(gateway: GatewayProcess) -> None:
    url = f"http://127.0.0.1:{gateway.port}"
    hello: Any = [{"role": "user", "content": "a"}]
    messages = anthropic.Anthropic(base_url=url, api_key="wrong", max_retries=0)
    with pytest.raises(anthropic.AuthenticationError, match="A valid API key is required") as found:
        messages.messages.create(model=MODEL, max_tokens=1, messages=hello)
    assert found.value.body["type"] == "error"
    chats = openai.OpenAI(base_url=f"{url}/v1", api_key="acme-key", max_retries=0)
    with pytest.raises(openai.NotFoundError, match="This model does not exist") as missing:
        chats.chat.completions.create(model="other", messages=hello)
    assert missing.value.code == "model_not_found"


def test_tokenize_needs_the_direct_path(served: Served, gateway: GatewayProcess, path: str) -> None:
    """Ray's ingress has the route, and answers 400: vLLM renamed what it reads."""
    assert served.send("/tokenize", prompt="abc")[1].status_code == (200 if path == "Direct" else 400)
    answer = gateway.request("/tokenize", {"model": MODEL, "prompt": "abc"})
    assert answer.status == (200 if path == "Direct" else 404)
    if path == "Direct":
        tokens = answer.json()["tokens"]
        assert gateway.request("/detokenize", {"model": MODEL, "tokens": tokens}).json() == {"prompt": "abc"}


def test_replicas_are_added_and_removed_without_broken_streams(served: Served) -> None:
    """A stream is sent again as soon as it ends, so one is running while the second replica stops."""
    is_loaded, is_over, ends = Event(), Event(), list[str]()

    def stream(until: Event) -> None:
        while not until.is_set():
            text = served.send(stream=True, max_tokens=400)[1].raise_for_status().text
            ends.append(text.rstrip().rsplit("\n", 1)[-1])

    with ThreadPoolExecutor(8) as pool:
        streams = [pool.submit(stream, is_over), *(pool.submit(stream, is_loaded) for _ in range(7))]
        try:
            processes.wait_until(lambda: served.count_replicas() == 2 or None, what="two replicas", timeout=TIMEOUT)
            is_loaded.set()
            processes.wait_until(lambda: served.count_replicas() == 1 or None, what="one replica", timeout=TIMEOUT)
        finally:
            is_loaded.set()
            is_over.set()
        for each in streams:
            each.result()
    assert set(ends) == {"data: [DONE]"}


def test_broken_engine_ends_a_stream_with_an_error(served: Served) -> None:
    """The last test: Serve starts another replica afterwards. So many answers do not end before a busy client reads."""
    body = {"model": MODEL, "prompt": "a", "max_tokens": 2000, "ignore_eos": True, "stream": True, "n": 256}
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
