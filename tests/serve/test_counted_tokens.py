"""The gateway counts for `tokensPerMinute` what vLLM counted, or what the README of chart `gateway` says instead.

The Serve configuration of chart `ray-service` runs with a tiny model behind the real HAProxy. A token of it is a byte.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from charts.kit import chat, over, serve_config
from gateway.kit.connection import Connection, build_request
from gateway.kit.process import GatewayProcess, start_gateway, sum_series
from gateway.kit.values import tenant
from rayhelm import processes
from rayhelm.deploy.serve_models import list_llm_configs
from rayhelm.run.local.config import set_listen_address
from rayhelm.run.local.serve import up
from rayhelm.run.local.state import EndpointModel, EndpointState
from rayhelm.run.standin.checkpoint import write_checkpoint

pytestmark = [pytest.mark.serve, pytest.mark.timeout(1800)]

MODEL, FAMILY = "llama-8b", "LlamaForCausalLM"
CONTEXT = 16384
TIMEOUT = 900.0
"""Seconds for a busy computer."""
RELEASE = over(
    chat(
        revision="",
        engine={
            "maxModelLen": CONTEXT,
            "maxNumSeqs": 4,
            "maxNumBatchedTokens": CONTEXT,
            "dtype": "float32",
            "enforceEager": True,
            "loadFormat": "dummy",
            "extra": {"kv_cache_memory_bytes": 2**27, "reasoning_parser": "deepseek_r1"},
        },
        accelerator={"kind": "cpu"},
        workerGroups=[],
        autoscaling={"targetOngoingRequests": 4, "maxReplicas": 1},
    ),
    {"workerGroups": {"gpu": {"gpu": {"count": 0}}}, "weights": {"enabled": False}},
)
PROMPT = "Tell me of the sea. " * 40
OUTPUT = 120
"""Tokens of an answer that ends."""
ENDLESS = CONTEXT - 2000
"""Tokens of an answer that does not end within a test."""
REASONING = {"<think>": 260, "</think>": 261}
"""Tokens around reasoning, behind those of the tiny model."""
ONLY_REASONING = {"logit_bias": {REASONING["</think>"]: -100}}
"""Such an answer does not go on with content."""
HIDDEN = {"stream": True, "include_reasoning": False, **ONLY_REASONING}
SEVERAL: dict[str, dict[str, Any]] = {
    "plain": {"stream": True, "n": 4},
    "continuous": {"stream": True, "n": 4, "stream_options": {"include_usage": True, "continuous_usage_stats": True}},
}
STOPPED_BY = {408: "serve-stops-after", 504: "gateway-stops-after"}
"""Headers of this test with a time in seconds, by the status that the client gets then."""
BYTES_PER_TOKEN = 3
"""What the gateway assumes of a prompt until a response says how many tokens it has."""


@dataclass(frozen=True)
class Tokens:
    """What vLLM's counters say."""

    prompt: int = 0
    generated: int = 0
    begun: int = 0
    """Tokens of prompts whose computation began."""

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(self.prompt + other.prompt, self.generated + other.generated, self.begun + other.begun)

    def __sub__(self, other: "Tokens") -> "Tokens":
        return Tokens(self.prompt - other.prompt, self.generated - other.generated, self.begun - other.begun)


class Engine:
    """vLLM's counters, from the files of the Prometheus client: Ray's export loses some if the computer is busy."""

    def __init__(self, http: httpx.Client, metrics: Path) -> None:
        """`http` sends to Ray Serve; `metrics` has the files of the Prometheus client."""
        self._http, self._metrics = http, metrics
        self._own, self._steps = Tokens(), self._count_steps(self._scrape())
        self.known = self.read()

    def read(self) -> Tokens:
        """Return the counters without the requests of this class, when nothing else changes them any more."""
        before, self.known = None, self._step()
        while self.known != before:
            before, self.known = self.known, self._step()
        return self.known

    def has_generated(self, before: Tokens) -> bool:
        return self._read(self._scrape()).generated > before.generated

    def _step(self) -> Tokens:
        """Ask for two tokens, and wait for the metrics. An export can have a part of what a request changes."""
        body = {"model": MODEL, "prompt": "a", "max_tokens": 2}
        usage = self._http.post("/v1/completions", json=body).raise_for_status().json()["usage"]
        self._own += Tokens(usage["prompt_tokens"], usage["completion_tokens"], usage["prompt_tokens"])
        self._steps += 1
        return self._read(processes.wait_until(self._scrape_step, what="metrics", timeout=TIMEOUT, poll=0.02))

    def _scrape_step(self) -> str | None:
        text = self._scrape()
        return text if self._count_steps(text) == self._steps else None

    def _scrape(self) -> str:
        registry = CollectorRegistry()
        MultiProcessCollector(registry, path=str(self._metrics))
        return generate_latest(registry).decode()

    def _read(self, text: str) -> Tokens:
        names = ("prompt_tokens", "generation_tokens", "prefix_cache_queries")
        return Tokens(*(int(sum_series(text, f"vllm:{name}_total")) for name in names)) - self._own

    @staticmethod
    def _count_steps(text: str) -> int:
        """No other requests ask for two tokens."""
        two, one = (sum_series(text, "vllm:request_params_max_tokens_bucket", le=most) for most in ("2.0", "1.0"))
        return int(two - one)


@dataclass(frozen=True)
class Sent:
    """A request, and what it cost."""

    counted: int
    """By the gateway."""
    engine: Tokens
    size: int
    """Bytes of the body."""
    status: int
    """0 if the client left before the response."""
    events: list[Any]
    """What the client got: events of a stream, or a document."""

    @property
    def estimated_prompt(self) -> int:
        return self.size // BYTES_PER_TOKEN


@dataclass(frozen=True)
class System:
    """A gateway, and the engine behind it."""

    gateway: GatewayProcess
    engine: Engine
    names: Iterator[str]

    def send(
        self,
        *,
        prompt: str = PROMPT,
        events: int = 0,
        leave: Callable[[Tokens], object] | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        **more: Any,
    ) -> Sent:
        """Send a chat. The client leaves after `events`, or when `leave` returns, which gets the counters before."""
        content = {"model": MODEL, "messages": [{"role": "user", "content": prompt}], "max_tokens": OUTPUT}
        body = json.dumps({**content, "ignore_eos": True, **more}).encode()
        name, before = next(self.names), self.engine.known
        sent = [("x-request-id", name), *headers]
        with self.gateway.connect(TIMEOUT) as connection:
            connection.send(build_request("/v1/chat/completions", body, key="metered-key", headers=sent))
            if leave:
                leave(before)
                status, found = 0, []
            else:
                status, found = receive(connection, events)
            connection.reset()
        counted = int(self.gateway.log_entry(name)["tokens"])
        return Sent(counted, self.engine.read() - before, len(body), status, found)

    def abandon(self, **more: Any) -> Sent:
        """Send a chat that the client leaves long before its end. A busy computer may let the engine reach that first:
        then send another one."""
        for _ in range(8):
            sent = self.send(**more, max_tokens=ENDLESS)
            if sent.engine.generated < ENDLESS * more.get("n", 1):
                return sent
        raise AssertionError("the engine goes on when its client leaves")


def receive(connection: Connection, most: int) -> tuple[int, list[Any]]:
    """Return the status and the events of a response, or its first `most` events. A document is one event."""
    found: list[Any] = []
    with connection.begin_response("POST") as response:
        for line in response:
            if (part := line.removeprefix(b"data: ")).startswith(b"{"):
                found.append(json.loads(part))
            if most and len(found) == most:
                break
        return response.status, found


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    state, taken = EndpointState(tmp_path_factory.mktemp("state")), set[int]()
    port, metrics = processes.find_free_port(taken), tmp_path_factory.mktemp("metrics")
    model = write_thinking_model(state.stand_ins)
    config = set_listen_address(serve_config(over(RELEASE, chat(source=str(model)))), port)
    (llm,) = list_llm_configs(config["applications"][0])
    llm["log_engine_metrics"] = False  # in Ray's metrics; vLLM then has them in its own
    end = {"host": "127.0.0.1", "cidrs": ["127.0.0.1/32"], "port": port}
    values = {
        "tenants": {"metered": tenant("metered", [MODEL], tokensPerMinute=10**12)},
        "models": {
            MODEL: {
                "contextTokens": CONTEXT,
                "versions": {"stable": {"routePrefix": "/chat", "endpoints": {"ray": end}}},
            }
        },
    }
    with ExitStack() as stack:
        patched = stack.enter_context(pytest.MonkeyPatch.context())
        patched.setenv("PROMETHEUS_MULTIPROC_DIR", str(metrics))
        stack.callback(state.clear)
        stack.callback(processes.stop_run, state.run, grace=1)
        models = [EndpointModel(model=MODEL, task="chat", prefix="/chat")]
        endpoint = up(config, models, state, stand_in=True, share_imports=True)
        http = httpx.Client(base_url=f"{endpoint.serve_url}/chat", trust_env=False, timeout=TIMEOUT)
        engine = Engine(stack.enter_context(http), metrics)
        gateway = stack.enter_context(start_gateway(values, edit={"haproxy.cfg": add_stoppers}))
        yield System(gateway, engine, (f"request-{number}" for number in count()))


def write_thinking_model(folder: Path) -> Path:
    """Write a tiny model that has the tokens around reasoning, and a longer context."""
    model = write_checkpoint(FAMILY, folder)
    tokenizer, config = (json.loads((model / name).read_text()) for name in ("tokenizer.json", "config.json"))
    assert len(tokenizer["model"]["vocab"]) == min(REASONING.values())
    first, *_ = tokenizer["added_tokens"]
    tokenizer["model"]["vocab"] |= REASONING
    tokenizer["added_tokens"] += [{**first, "id": number, "content": token} for token, number in REASONING.items()]
    config["max_position_embeddings"] = CONTEXT
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    (model / "config.json").write_text(json.dumps(config))
    return model


def add_stoppers(text: str) -> str:
    """Let a header of the client stop the request. The gateway removes those of Ray Serve."""
    rule = "  http-request set-uri /chat"
    serve, own = (f"req.hdr({header})" for header in STOPPED_BY.values())
    rules = (
        f"  http-request set-header x-request-timeout-seconds %[{serve}] if {{ {serve} -m found }}\n"
        f"  http-request set-timeout server {own},mul(1000) if {{ {own} -m found }}\n"
    )
    assert text.count(rule) == 1
    return text.replace(rule, rules + rule)


COMPLETE: dict[str, dict[str, Any]] = {
    "document": {},
    "stream": {"stream": True},
    "hidden-reasoning": HIDDEN,
    "interval": {"stream": True, "stream_interval": 50},
}


@pytest.mark.parametrize("more", COMPLETE.values(), ids=COMPLETE)
def test_complete_response_counts_as_in_the_engine(system: System, more: dict[str, Any]) -> None:
    sent = system.send(**more)
    assert sent.engine.generated == OUTPUT
    assert sent.counted == sent.engine.prompt + sent.engine.generated


@pytest.mark.parametrize("more", SEVERAL.values(), ids=SEVERAL)
def test_prompt_of_several_answers_counts_once(system: System, more: dict[str, Any]) -> None:
    sent = system.send(**more)
    assert sent.engine.generated == 4 * OUTPUT
    assert sent.counted == sent.engine.prompt / 4 + sent.engine.generated


def test_prompt_of_a_beam_search_counts_once(system: System) -> None:
    sent = system.send(use_beam_search=True, n=2, max_tokens=8)
    usage = sent.events[0]["usage"]
    assert sent.counted == usage["prompt_tokens"] + usage["completion_tokens"]
    assert sent.engine.prompt > 8 * usage["prompt_tokens"]


LEFT = {
    "stream": ({"stream": True}, 200),
    "several-answers": (SEVERAL["plain"], 200),
    "hidden-reasoning": (HIDDEN, 1),
    "interval": (COMPLETE["interval"], 8),
}


@pytest.mark.parametrize(("more", "events"), LEFT.values(), ids=LEFT)
def test_stream_that_the_client_left_counts_what_it_got(system: System, more: dict[str, Any], events: int) -> None:
    """The first event of each answer has no token. The others are of one kind, with little text."""
    sent = system.abandon(**{**more, **ONLY_REASONING}, events=events)
    assert events <= sent.counted - sent.estimated_prompt <= sent.engine.generated + more.get("n", 1)


def test_left_stream_with_continuous_usage_counts_exactly_what_the_client_got(system: System) -> None:
    sent = system.send(**SEVERAL["continuous"], max_tokens=ENDLESS, events=200)
    got = {event["choices"][0]["index"]: event["usage"]["completion_tokens"] for event in sent.events}
    assert sum(got.values()) <= sent.counted - sent.engine.prompt / 4 <= sent.engine.generated


def test_client_that_leaves_before_the_first_byte_pays_its_prompt(system: System) -> None:
    """A response in one piece comes when all of it is generated."""

    def wait(before: Tokens) -> None:
        processes.wait_until(lambda: system.engine.has_generated(before) or None, what="a token", timeout=TIMEOUT)

    sent = system.abandon(leave=wait)
    assert sent.engine.generated > 0
    assert sent.counted == sent.estimated_prompt


@pytest.mark.parametrize("status", STOPPED_BY)
def test_request_that_is_stopped_counts_its_prompt(system: System, status: int) -> None:
    """The time doubles until the engine has generated something by then."""
    for seconds in (2**number for number in count(1)):
        sent = system.send(max_tokens=ENDLESS, headers=((STOPPED_BY[status], str(seconds)),))
        assert sent.status == status
        assert sent.counted == sent.estimated_prompt
        if sent.engine.generated:
            return


def test_prompt_that_is_aborted_while_it_is_computed_counts(system: System) -> None:
    """The engine counts a prompt with its first token. The client leaves later or earlier until it meets that time."""
    delay = 0.05
    for number in count():
        prompt = f"{number} {'x' * (CONTEXT - 1000)}"
        sent = system.send(prompt=prompt, leave=lambda _, delay=delay: time.sleep(delay))
        assert sent.counted == sent.estimated_prompt
        if sent.engine.begun and not sent.engine.prompt:
            return
        delay *= 0.7 if sent.engine.prompt else 1.5
