"""Every query of the dashboards runs against real Ray Serve LLM, vLLM and the gateway under load. They send traces."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from rayhelm.facts.metrics import load_exporters
from rayhelm.live.traffic.records import read_lines
from rayhelm.live.traffic.summary import TrafficLog
from rayhelm.observe.check import metrics_of
from rayhelm.observe.rules import load_alerts, load_recordings
from rayhelm.observe.rules.recordings import RecordingRule
from rayhelm.processes import TimedOut, wait_until
from rayhelm.run.local.gateway import TENANT
from shared.built import built_program
from shared.dashboard_queries import OF_UNUSED_FEATURES, fill_variables, queries_of
from testbed.live_metrics import logs as logged
from testbed.live_metrics.endpoint import Endpoint, serve
from testbed.live_metrics.load import PREFIX, Sent, send_complete, send_load
from testbed.live_metrics.logs import ABORTED, SERVED, UNSEEN, read_ray_logs, send_logged_requests
from testbed.live_metrics.prefixes import PREFIXES, send_prefixes
from testbed.live_metrics.tenants import ALONE
from testbed.log_pipeline import run_pipeline
from testbed.trace_receiver import Span, TraceReceiver, receive_traces

pytestmark = [pytest.mark.serve, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
LOAD, SETTLE = 60, 25
"""Seconds of load, and seconds in which its last metrics are scraped: Ray refreshes them every 10 s. On a busy computer
it takes longer, so the counter of the engine decides."""
ROUNDS = 4
"""Loads after which tokens of tenants are compared with those of the engine, until they are equal."""
TOKENS = [(model, kind) for model in ("chat", "embed") for kind in ("prompt", "generation")]
Different = dict[tuple[str, str], list[list[float]]]
ABSENT_EXPORTERS = {
    "autoscaler": "the local endpoint has no autoscaler of Ray",
    "dcgm": "no GPU",
    "amd": "no GPU",
    "intel": "no GPU",
    "kuberay": "no Kubernetes",
    "kube-state-metrics": "no Kubernetes",
    "kubelet": "no Kubernetes",
    "cert-manager": "no Kubernetes",
}
"""Exporters that a local endpoint without a GPU does not have, by file of the catalog."""
WITHOUT_DATA = {
    **OF_UNUSED_FEATURES,
    'Name="GPU"': "no GPU",
    "rayhelm:gpu_xid_code": "no GPU",
    "ray_cluster_active_nodes": "the local endpoint has no autoscaler of Ray",
}
"""Parts of queries that have no data here, and why."""
SERIES_WITHOUT_DATA = {
    "rayhelm:gpu_xid_code": "no GPU",
    "rayhelm:service_cost_usd_per_hour": "Ray has no GPU",
    "rayhelm:service_cost_idle_usd_per_hour": "Ray has no GPU",
}
"""Recorded series that have no data here, and why."""


@dataclass(frozen=True)
class Run:
    """An endpoint after the load."""

    endpoint: Endpoint
    start: float
    end: float
    sent: Sent
    receiver: TraceReceiver

    def has_data(self, expression: str) -> bool:
        return bool(self.endpoint.query_range(fill_variables(expression), self.start, self.end))


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PROMETHEUS", str(built_program("prometheus")))
        # As in a pod with `logs.stdout`.
        patched.setenv("RAY_SERVE_LOG_TO_STDERR", "0")
        with receive_traces() as receiver, serve(traces=receiver.url) as endpoint:
            start = time.time()
            sent = asyncio.run(send_load(endpoint, LOAD))
            time.sleep(SETTLE)
            wait_until(lambda: count_tokens(endpoint) >= sent.completion_tokens or None, what="its tokens", timeout=300)
            yield Run(endpoint, start, time.time(), sent, receiver)


def count_tokens(endpoint: Endpoint) -> float:
    """Tokens of model `chat` that the engine has generated, as Prometheus knows."""
    found = endpoint.query('sum(ray_vllm_generation_tokens_total{model_name="chat"})')
    return float(found[0]["value"][1]) if found else 0.0


def reason_without_data(expression: str) -> str:
    """Why a query cannot have data here; empty if it has to have some."""
    reasons = [reason for part, reason in WITHOUT_DATA.items() if part in expression]
    used = metrics_of(expression)
    exporters = [name for name, exporter in load_exporters().items() if used & exporter.metrics.keys()]
    reasons += [ABSENT_EXPORTERS[name] for name in exporters if name in ABSENT_EXPORTERS]
    return "; ".join(sorted(set(reasons)))


def test_load_reached_the_models(run: Run) -> None:
    assert {200, 400, 401, 404} <= set(run.sent.statuses)
    assert run.sent.aborted
    assert not {status for status in run.sent.statuses if status >= 500}


@pytest.mark.parametrize("dashboard", sorted((ROOT / "dashboards").glob("*.json")), ids=lambda path: path.stem)
def test_panels_have_data(run: Run, dashboard: Path, capsys: pytest.CaptureFixture[str]) -> None:
    excused = {name: reason for name, text in queries_of(dashboard).items() if (reason := reason_without_data(text))}
    expected = {name: text for name, text in queries_of(dashboard).items() if name not in excused}
    empty = [name for name, text in expected.items() if not run.has_data(text)]
    with capsys.disabled():
        print(f"\n{dashboard.stem}: {len(expected) - len(empty)} of {len(expected)} queries have data", end="")
        for reason, count in sorted(Counter(excused.values()).items()):
            print(f"; {count} more cannot: {reason}", end="")
    assert not empty


@pytest.mark.parametrize("group", load_recordings())
def test_recording_rules_have_data(run: Run, group: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The fleet of the endpoint asks for rules, so Prometheus evaluates those that join the series of the plan."""
    rules = load_recordings()[group]
    expected = [rule for rule in rules if rule.series not in SERIES_WITHOUT_DATA]
    empty = [f"{rule.series} {rule.labels}" for rule in expected if not run.has_data(selector_of(rule))]
    with capsys.disabled():
        print(f"\nrecorded series of group {group}: {len(expected) - len(empty)} of {len(expected)} have data", end="")
        for rule in rules:
            if rule.series in SERIES_WITHOUT_DATA:
                print(f"; {rule.series} cannot: {SERIES_WITHOUT_DATA[rule.series]}", end="")
    assert empty == []


def selector_of(rule: RecordingRule) -> str:
    labels = ",".join(f'{name}="{value}"' for name, value in rule.labels.items())
    return f"{rule.series}{{{labels}}}"


def longest_time(values: list[list[object]], step: float) -> float:
    """Longest time in seconds without a gap between samples."""
    start = last = float(str(values[0][0]))
    longest = 0.0
    for moment in (float(str(value[0])) for value in values):
        start = start if moment - last <= step * 1.5 else moment
        last, longest = moment, max(longest, moment - start)
    return longest


@pytest.mark.parametrize("name", [name for name, alert in load_alerts().items() if not alert.always])
def test_alert_does_not_fire_in_a_normal_run(run: Run, name: str) -> None:
    alert = load_alerts()[name]
    pending = int(alert.pending[:-1]) * {"m": 60, "h": 3600, "d": 86400}[alert.pending[-1]]
    found = run.endpoint.query_range(alert.query, run.start, run.end)
    assert [series["metric"] for series in found if longest_time(series["values"], 10) >= pending] == []


def test_tokens_of_the_engine_are_those_of_the_responses(run: Run) -> None:
    """Streams that the client left count in the engine only."""
    assert count_tokens(run.endpoint) >= run.sent.completion_tokens > 0


@pytest.fixture(scope="module")
def different_tokens(run: Run) -> Different:
    """Tokens whose sums of the engine and of all tenants differed after each load: the sums before and after the last.

    Both counters are exported every 10 s, and the sums of tenants up to a second later. Ray exports what was added
    since the last time, and a busy computer can lose one export of a counter. A wrong counter is wrong in each round.
    """

    def read(model: str, kind: str) -> list[float]:
        queries = (f'sum(ray_{name}_{kind}_tokens_total{{model_name="{model}"}})' for name in ("vllm", "rayhelm"))
        return [float(found[0]["value"][1]) if found else 0.0 for found in map(run.endpoint.query, queries)]

    def is_equal(tokens: tuple[str, str]) -> bool:
        engine, tenants = (now - then for now, then in zip(read(*tokens), before[tokens], strict=True))
        has_tokens = tokens != ("embed", "generation")
        return bool(tenants) == has_tokens and abs(tenants - engine) <= 0.01 * engine

    def are_all_equal() -> bool | None:
        different.difference_update({tokens for tokens in different if is_equal(tokens)})
        return not different or None

    before, different = {tokens: [0.0, 0.0] for tokens in TOKENS}, set(TOKENS)
    for number in range(ROUNDS):
        if number:
            before = {tokens: read(*tokens) for tokens in different}
            asyncio.run(send_load(run.endpoint, LOAD / 4))
            time.sleep(SETTLE)
        with suppress(TimedOut):
            wait_until(are_all_equal, what="equal sums", timeout=40)
            break
    return {tokens: [before[tokens], read(*tokens)] for tokens in different}


@pytest.mark.parametrize("tokens", TOKENS, ids="-".join)
def test_tokens_of_all_tenants_are_those_of_the_engine(different_tokens: Different, tokens: tuple[str, str]) -> None:
    """Aborted streams, answers from the prefix cache and embeddings included."""
    assert different_tokens.get(tokens) is None


def test_tenant_has_exactly_the_tokens_of_its_requests(run: Run) -> None:
    """The other tenants sent the load."""

    def count(kind: str) -> float:
        found = run.endpoint.query(f'sum(ray_rayhelm_{kind}_tokens_total{{model_name="chat",tenant="{ALONE}"}})')
        return float(found[0]["value"][1]) if found else 0.0

    sent = asyncio.run(send_complete(run.endpoint, ALONE))
    expected = (sent.prompt_tokens, sent.completion_tokens)
    wait_until(lambda: (count("prompt"), count("generation")) == expected or None, what="its tokens", timeout=300)


# -- traces ----------------------------------------------------------------------------------------------------------

PROMPT = "the-secret-of-the-prompt"
FIRST, ENGINE = "POST /chat/v1/chat/completions", "llm_request"
SPANS = {
    FIRST,
    "proxy_http_request OpenAiIngress POST /v1/chat/completions",
    "route_to_replica OpenAiIngress __call__",
    "replica_handle_request OpenAiIngress __call__",
    "route_to_replica LLMServer:chat chat",
    "replica_handle_request LLMServer:chat chat",
    ENGINE,
}
"""Names of the spans of a chat request."""


def chat(run: Run, request_id: str, headers: dict[str, str] | None = None, **body: object) -> httpx.Response:
    content = {"model": "chat", "messages": [{"role": "user", "content": PROMPT}], "max_tokens": 4, **body}
    sent = {"Authorization": f"Bearer {run.endpoint.keys[TENANT]}", "x-request-id": request_id, **(headers or {})}
    url = f"{run.endpoint.url}/v1/chat/completions"
    return httpx.post(url, json=content, headers=sent, trust_env=False, timeout=600)


def spans_of(spans: list[Span], request_id: str) -> dict[str, Span]:
    """Return the spans of the trace of a request by name; empty before its first span arrived."""
    traces = {span.trace_id for span in spans if span.name == FIRST and span.attributes["request_id"] == request_id}
    return {span.name: span for span in spans if span.trace_id in traces}


def wait_for_trace(run: Run, request_id: str) -> dict[str, Span]:
    found = run.receiver.wait_for(lambda spans: spans_of(spans, request_id).keys() >= SPANS)
    return spans_of(found, request_id)


def test_trace_joins_gateway_serve_and_engine(run: Run) -> None:
    usage = chat(run, "traced").json()["usage"]
    spans = wait_for_trace(run, "traced")
    assert spans.keys() == SPANS
    first, engine = spans[FIRST], spans[ENGINE]
    assert {span.trace_id for span in spans.values()} == {first.trace_id}
    assert first.parent_id == ""
    assert {span.parent_id for span in spans.values()} - {""} <= {span.span_id for span in spans.values()}
    assert engine.parent_id == first.span_id
    assert first.attributes["tenant"] == "up"
    assert {span.attributes["request_id"] for span in spans.values() if span is not engine} == {"traced"}
    assert "traced" in engine.attributes["gen_ai.request.id"]
    assert engine.attributes["gen_ai.usage.prompt_tokens"] == usage["prompt_tokens"]
    assert engine.attributes["gen_ai.usage.completion_tokens"] == usage["completion_tokens"]
    assert {span.resource["service.name"] for span in spans.values()} == {"rayhelm-up"}
    written = f'"trace_id":"{first.trace_id}"'
    wait_until(lambda: written in run.endpoint.gateway_log.read_text() or None, what="the gateway's line", timeout=300)


def test_client_cannot_choose_trace_or_sampling(run: Run) -> None:
    trace = "1" * 32
    assert chat(run, "forged", {"traceparent": f"00-{trace}-{'2' * 16}-00"}).is_success
    spans = wait_for_trace(run, "forged")
    assert spans.keys() == SPANS
    assert trace not in {span.trace_id for span in spans.values()}


def test_requests_that_are_not_sampled_have_no_span(run: Run) -> None:
    """Without a sampling ratio of 0, replicas decide again. A sampled request afterwards ends the wait."""
    trace = "3" * 32
    body = {"model": "chat", "messages": [{"role": "user", "content": PROMPT}], "max_tokens": 2}
    for _ in range(10):
        sent = {"traceparent": f"00-{trace}-{'4' * 16}-00"}
        url = f"{run.endpoint.serve_url}{FIRST.removeprefix('POST ')}"
        assert httpx.post(url, json=body, headers=sent, trust_env=False, timeout=600).is_success
    assert chat(run, "after").is_success
    assert wait_for_trace(run, "after").keys() == SPANS
    roots = [span for span in run.receiver.spans if not span.parent_id]
    assert trace not in {span.trace_id for span in run.receiver.spans}
    assert {span.name.split()[0] for span in roots} == {"POST"}


def test_no_span_has_text_of_a_request(run: Run) -> None:
    """vLLM's error of the second request quotes the prompt."""
    assert chat(run, "quoted").is_success
    refused = chat(run, "refused", temperature=PROMPT)
    assert refused.status_code == 400
    assert PROMPT in refused.text
    assert wait_for_trace(run, "quoted").keys() == SPANS
    found = run.receiver.wait_for(lambda spans: len(spans_of(spans, "refused")) >= 4)
    assert spans_of(found, "refused")[FIRST].attributes["http.response.status_code"] == 400
    texts = (PROMPT.encode(), PREFIX.encode(), b"Question", b"Sentence")
    assert [span.name for span in found if any(text in span.raw for text in texts)] == []


@dataclass(frozen=True)
class Logs:
    """Log lines of a run, by the container that writes them."""

    haproxy: list[str]
    logs: list[str]
    statuses: dict[str, int]
    """Status by request id."""

    def of(self, name: str, lines: list[str]) -> list[dict[str, object]]:
        """Records of a request."""
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return [record for record in found if record.get("request_id") == name]


@pytest.fixture(scope="module")
def logs(run: Run) -> Logs:
    statuses = send_logged_requests(run.endpoint)
    wanted = {(name, "engine request ended") for name in (*SERVED, ABORTED)}

    def is_enough(records: list[dict[str, object]]) -> bool:
        proxied = {record.get("request_id") for record in records if record.get("component_name") == "proxy"}
        ended = {(record.get("request_id"), record["message"]) for record in records}
        return wanted <= ended and {*statuses, ABORTED} - UNSEEN <= proxied

    ray = read_ray_logs(run.endpoint.ray_logs, is_enough)

    def read_gateway_log() -> list[str] | None:
        *lines, _incomplete = run.endpoint.gateway_log.read_text().split("\n")
        return lines if all(any(name in line for line in lines) for name in (*statuses, ABORTED)) else None

    return Logs(wait_until(read_gateway_log, what="the gateway's log", timeout=300), ray, statuses)


@pytest.mark.parametrize("name", [*SERVED, ABORTED])
def test_request_has_one_id_and_its_tenant_in_all_logs(logs: Logs, name: str) -> None:
    (gateway,) = logs.of(name, logs.haproxy)
    ray = logs.of(name, logs.logs)
    (engine,) = [record for record in ray if record["message"] == "engine request ended"]
    proxy = [record for record in ray if record.get("component_name") == "proxy"]
    assert proxy
    assert {record["tenant"] for record in (gateway, engine, *proxy)} == {TENANT}
    assert (engine["finish_reason"] == "abort") == (name == ABORTED), engine
    assert int(str(engine["prompt_tokens"])) > 0
    assert engine["model"] == gateway["model"]


def test_tenant_finds_only_its_own_prefixes_in_the_cache(run: Run) -> None:
    """From the time of a response another tenant could learn what was asked."""
    cached = send_prefixes(run.endpoint)
    assert {name for name, tokens in cached.items() if tokens} == {"acme again", "search again", "own salt again"}
    assert len(cached) == len(PREFIXES)


def test_traffic_is_read_from_both_logs(logs: Logs) -> None:
    found = TrafficLog()
    found.add(read_lines([*logs.haproxy, *logs.logs]))
    read = {name: request for (_, name), request in found.requests.items()}
    assert {name: read[name].status for name in SERVED} == {name: logs.statuses[name] for name in SERVED}
    assert all(read[name].prompt for name in SERVED)


def test_logs_have_no_text_of_clients_and_no_key(run: Run, logs: Logs) -> None:
    """Also not of requests that were refused, whose exceptions quote them."""
    refused = {name for name, status in logs.statuses.items() if status >= 400}
    assert len(refused) >= 7
    assert any("exception" in record for name in refused for record in logs.of(name, logs.logs))
    for line in (*logs.haproxy, *logs.logs):
        assert logged.PROMPT not in line
        assert run.endpoint.keys[TENANT] not in line
        assert "impostor" not in line


def test_request_is_found_in_a_sink_behind_a_collector(logs: Logs, tmp_path: Path) -> None:
    built_program("otelcol")
    with run_pipeline(tmp_path) as pipeline:
        pipeline.add_container("gateway", "gateway-1", "haproxy").write(logs.haproxy)
        pipeline.add_container("up", "chat-head", "logs").write(logs.logs)
        total = len(logs.haproxy) + len(logs.logs)
        records = pipeline.wait_for(lambda found: len(found) >= total)
    for name in SERVED:
        found = [record for record in records if record["attributes"].get("request_id") == name]
        sources = {
            (record["resource"]["k8s.container.name"], record["resource"]["tenant"])
            for record in found
            if "tenant" in record["resource"]
        }
        assert sources == {("haproxy", TENANT), ("logs", TENANT)}
