"""`rayhelm cost` over a real Prometheus, against figures computed by hand.

The samples are of two days of October 2025, one each minute:

    service llama-8b   2 GPUs. One replica for 48 hours, which has requests for the first 24, and a second one for the
                       last 12 hours without requests. From minute 90 to minute 1440 the engine finishes one request of
                       600 input and 200 output tokens each minute; its counters restart at minute 600.
                       Of these tokens tenant acme has 400 and 50, and tenant search 200 and 150.
    service audio      1 GPU, 48 hours, without a price.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
import yaml

from rayhelm.live.cost.csv_file import COLUMNS
from rayhelm.live.cost.report import CostReport
from shared.command import Answer, run
from shared.prometheus import serve_samples
from testbed.live_metrics.recording.server import Times, list_recording_rules, read_rules

START = int(datetime(2025, 10, 10, tzinfo=UTC).timestamp())
MINUTES = range(1, 2878)
"""The last sample is so old at the end of the second day that the next one would not see it."""
REQUESTS = 1351
FLEET = str(Path(__file__).parents[2] / "values/single-gpu/fleet.yaml")
"""Plans llama-8b: one GPU at 0.8048 USD/h for 0.5 requests/s of 600 and 200 tokens."""
PRICE = 0.8048
CHAT = {"namespace": "models", "rayhelm_dev_service": "llama-8b", "job": "ray", "instance": "10.0.0.1:8080"}
AUDIO = {"namespace": "models", "rayhelm_dev_service": "audio", "job": "ray", "instance": "10.0.0.2:8080"}
DEPLOYMENT = {"application": "llama-8b", "deployment": "LLMServer:llama-8b"}
GPU = {"Name": "GPU", "rayhelm_dev_worker_group": "gpu"}

OF_IDLE_COST = {
    "rayhelm:gpu_price:dollars_per_hour",
    "rayhelm:model_info",
    "rayhelm:plan_replica_dollars_per_hour",
    "rayhelm:replicas",
    "rayhelm:replicas_busy",
    "rayhelm:cost_usd_per_hour",
    "rayhelm:cost_idle_usd_per_hour",
    "rayhelm:service_cost_usd_per_hour",
    "rayhelm:service_cost_idle_usd_per_hour",
}
"""Recorded series that the idle cost of a service needs."""


def samples() -> Iterator[str]:
    yield from series("up", lambda minute: 1, {"job": "ray", "instance": "10.0.0.1:8080"})
    yield from series("ray_resources", lambda minute: 1 if minute < 2160 else 2, {**CHAT, **GPU, "State": "USED"})
    yield from series("ray_resources", lambda minute: 1 if minute < 2160 else 0, {**CHAT, **GPU, "State": "AVAILABLE"})
    yield from series("ray_resources", lambda minute: 1, {**AUDIO, **GPU, "State": "USED"})
    healthy, running = "ray_serve_deployment_replica_healthy", "ray_serve_replica_processing_queries"
    for name, first in (("r1", 0), ("r2", 2160)):
        labels = {**CHAT, **DEPLOYMENT, "replica": name}
        yield from series(healthy, lambda minute, first=first: 1 if minute >= first else None, labels)
        busy = 3 if name == "r1" else 0
        yield from series(running, lambda minute, busy=busy: busy if minute < 1440 else 0, labels)
    asr = {**AUDIO, "application": "asr", "deployment": "LLMServer:whisper-v3_1", "replica": "r3"}
    yield from series(healthy, lambda minute: 1, asr)
    engine = {**CHAT, "model_name": "llama-8b", "ReplicaId": "r1"}
    yield from series("ray_vllm_prompt_tokens_total", lambda minute: count(minute, 600), engine)
    yield from series("ray_vllm_generation_tokens_total", lambda minute: count(minute, 200), engine)
    for tenant, prompt, generated in (("acme", 400, 50), ("search", 200, 150)):
        labels = {**engine, "tenant": tenant}
        yield from series("ray_rayhelm_prompt_tokens_total", lambda minute, n=prompt: count(minute, n), labels)
        yield from series("ray_rayhelm_generation_tokens_total", lambda minute, n=generated: count(minute, n), labels)
    finished = {**engine, "finished_reason": "stop"}
    yield from series("ray_vllm_request_success_total", lambda minute: count(minute, 1), finished)
    price = {label: CHAT[label] for label in ("namespace", "rayhelm_dev_service")}
    price["rayhelm_dev_worker_group"] = "gpu"
    yield from series("rayhelm:gpu_price:dollars_per_hour", lambda minute: 2 if minute < 1440 else 3, price)


def count(minute: int, each: int) -> int | None:
    """A counter that appears with its first increment at minute 90, restarts at minute 600, and stops at 1440."""
    if minute < 90:
        return None
    return (min(minute, 1440) - (89 if minute < 600 else 599)) * each


def series(name: str, value: Callable[[int], float | None], labels: dict[str, str]) -> Iterator[str]:
    inside = ",".join(f'{label}="{text}"' for label, text in labels.items())
    for minute in MINUTES:
        if (number := value(minute)) is not None:
            yield f"{name}{{{inside}}} {number} {START + 60 * minute}"


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve_samples(tmp_path_factory.mktemp("prometheus"), samples()) as url:
        yield url


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Prometheus with the series of the recording rules too. It takes the price of the fleet."""
    folder = tmp_path_factory.mktemp("recorded")
    fleet = folder / "fleet.yaml"
    rules = {"url": "http://prometheus:9090", "rules": "ConfigMap", "runbookUrl": "https://example.com/runbooks"}
    loaded = yaml.safe_load(Path(FLEET).read_text())
    loaded["clusters"]["main"]["prometheus"] = rules
    fleet.write_text(yaml.safe_dump(loaded))
    without_price = (line for line in samples() if not line.startswith("rayhelm:"))
    every = list_recording_rules(read_rules(fleet))
    levels = [[rule for rule in level if rule["record"] in OF_IDLE_COST] for level in every]
    times = Times(START, START + 48 * 3600, 300)
    with serve_samples(folder, without_price, [level for level in levels if level], times) as url:
        yield url


@pytest.fixture
def ask(prometheus: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    return lambda *arguments: run(capsys, monkeypatch, "cost", "--prometheus", prometheus, *arguments)


def read(answer: Answer) -> CostReport:
    return CostReport.model_validate_json(answer.out)


def near(value: float) -> object:
    return pytest.approx(value, rel=1e-6)


def test_cost_with_a_fleet_equals_the_sums_by_hand(ask: Callable[..., Answer]) -> None:
    answer = ask(FLEET, "--month", "2025-10", "--format", "json")
    assert answer.code == 0, answer.err
    (period,) = read(answer).periods
    model, free = period.rows
    assert (model.kind, model.service, model.model) == ("model", "llama-8b", "llama-8b")
    assert model.actual.gpu_hours == near(60)
    assert model.actual.cost == near(60 * PRICE)
    assert model.idle_cost == near((60 - 24) * PRICE)
    assert model.actual.requests == near(REQUESTS)
    assert model.actual.input_tokens == near(REQUESTS * 600)
    assert model.actual.output_tokens == near(REQUESTS * 200)
    assert model.actual.cost_per_request == near(60 * PRICE / REQUESTS)
    assert model.actual.cost_per_million_input_tokens == near(60 * PRICE / (REQUESTS * 600) * 1e6)
    assert model.actual.cost_per_million_output_tokens == near(60 * PRICE / (REQUESTS * 200) * 1e6)
    assert (free.kind, free.actual.gpu_hours) == ("free", near(96 - 60))
    assert free.actual.cost == free.idle_cost == near(36 * PRICE)
    assert period.total.actual.cost == near(96 * PRICE)
    assert period.total.actual.cost_per_request == near(96 * PRICE / REQUESTS)
    assert period.total.idle_cost == near((36 + 36) * PRICE)


def test_idle_cost_equals_the_recorded_idle_cost(recorded: str, ask: Callable[..., Answer]) -> None:
    """Both count GPUs without a replica, and replicas without a request."""
    (period,) = read(ask(FLEET, "--month", "2025-10", "--format", "json")).periods
    name = 'rayhelm:service_cost_idle_usd_per_hour{rayhelm_dev_service="llama-8b"}'
    query = {"query": f"sum(sum_over_time({name}[48h])) / 12", "time": START + 48 * 3600}
    answer = httpx.get(f"{recorded}/api/v1/query", params=query, trust_env=False, timeout=60).json()
    (found,) = answer["data"]["result"]
    assert period.total.idle_cost == near((36 + 36) * PRICE)
    assert float(found["value"][1]) == pytest.approx(period.total.idle_cost, rel=0.01)


def test_plan_is_compared_over_the_hours_with_data(ask: Callable[..., Answer]) -> None:
    (period,) = read(ask(FLEET, "--month", "2025-10", "--format", "json")).periods
    model = period.rows[0]
    assert model.planned
    assert model.difference_percent
    assert (period.hours, period.hours_with_data) == (31 * 24, 48)
    assert model.planned.cost == near(48 * PRICE)
    assert model.planned.requests == near(48 * 3600 * 0.5)
    assert model.difference_percent.cost == near(25)


def test_partial_month_reports_when_data_begins(ask: Callable[..., Answer]) -> None:
    answer = ask(FLEET, "--month", "2025-10", "--format", "json")
    (period,) = read(answer).periods
    assert period.data_from == datetime(2025, 10, 10, tzinfo=UTC)
    assert "48 of 744 hours, from 2025-10-10T00:00Z" in answer.err
    assert "not scaled up" in answer.err


def test_cost_without_a_fleet_uses_the_recorded_price_of_the_time(ask: Callable[..., Answer]) -> None:
    (period,) = read(ask("--month", "2025-10", "--format", "json")).periods
    model, free = (row for row in period.rows if row.service == "llama-8b")
    assert model.actual.gpu_hours == near(60)
    assert model.actual.cost == near(24 * 2 + 12 * 3 + 12 * 2 * 3)
    assert model.idle_cost == near(156 * (60 - 24) / 60)
    assert free.actual.cost == near(24 * 2 + 12 * 3)


def test_missing_price_keeps_the_row_and_ends_with_1(ask: Callable[..., Answer]) -> None:
    answer = ask("--month", "2025-10", "--format", "json")
    assert answer.code == 1
    (period,) = read(answer).periods
    (audio,) = (row for row in period.rows if row.service == "audio")
    assert audio.model == "whisper-v3_1"
    assert audio.actual.gpu_hours == near(48)
    assert (audio.actual.cost, audio.idle_cost) == (None, None)
    assert "for 48.0 of 48.0 GPU-hours; give the fleet file" in audio.reasons[0]
    assert period.total.reasons == ("without the cost of 1 row",)
    assert period.total.actual.cost_per_request is None
    assert "audio/whisper-v3_1: Prometheus has no `rayhelm:gpu_price:dollars_per_hour`" in answer.err


def test_csv_has_one_row_for_each_month_and_model(ask: Callable[..., Answer], tmp_path: Path) -> None:
    file = tmp_path / "costs.csv"
    assert ask(FLEET, "--month", "2025-10", "--format", "csv", "-o", str(file)).code == 0
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    assert tuple(rows[0]) == COLUMNS
    assert [row["kind"] for row in rows] == ["model", "free"]
    assert rows[0]["month"] == "2025-10"
    assert rows[0]["start"] == "2025-10-01T00:00:00Z"
    assert rows[0]["data_from"] == "2025-10-10T00:00:00Z"
    assert rows[0]["currency"] == "USD"
    assert float(rows[0]["cost"]) == near(60 * PRICE)
    assert rows[1]["requests"] == ""


def test_table_has_units_and_the_plan_below_each_model(ask: Callable[..., Answer]) -> None:
    out = ask(FLEET, "--month", "2025-10").out
    for text in (
        "GPU-hours",
        "USD per",
        "48.29",
        "plan",
        "difference",
        "+25.0 %",
        "(no replica)",
        "data of 48 of 744 hours",
    ):
        assert text in out


def test_month_without_data_reports_where_data_may_be(ask: Callable[..., Answer]) -> None:
    answer = ask("--month", "2024-01")
    assert answer.code == 1
    assert "has no data from 2024-01-01T00:00Z to 2024-02-01T00:00Z" in answer.err
    assert "fix:" in answer.err


def test_fleet_of_other_services_lists_the_ones_of_prometheus(ask: Callable[..., Answer], tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(Path(FLEET).read_text().replace("llama-8b:", "llama-8c:").replace("[llama-8b]", "[llama-8c]"))
    answer = ask(str(fleet), "--month", "2025-10", "--format", "json")
    assert answer.code == 1
    (problem,) = json.loads(answer.out)["problems"]
    assert "has no series of the services of the fleet: `llama-8c`; did you mean `llama-8b`?" in problem["message"]


SHARES = {"search": 200 / 350, "acme": 150 / 350}
"""A prompt token counts as a quarter of a generated one: 150 + 200 / 4, and 50 + 400 / 4."""


def test_cost_by_tenant_divides_the_model_by_its_tokens(ask: Callable[..., Answer]) -> None:
    answer = ask(FLEET, "--month", "2025-10", "--by-tenant", "--format", "json")
    assert answer.code == 0, answer.err
    (period,) = read(answer).periods
    model, free = period.rows
    assert {part.tenant: part.share for part in model.tenants} == {name: near(part) for name, part in SHARES.items()}
    assert [part.tenant for part in model.tenants] == ["search", "acme"]
    assert [part.cost for part in model.tenants] == [near(60 * PRICE * part) for part in SHARES.values()]
    assert [part.idle_cost for part in model.tenants] == [near(36 * PRICE * part) for part in SHARES.values()]
    assert [part.input_tokens for part in model.tenants] == [near(REQUESTS * 200), near(REQUESTS * 400)]
    assert [part.output_tokens for part in model.tenants] == [near(REQUESTS * 150), near(REQUESTS * 50)]
    assert free.tenants == ()
    assert sum(part.cost or 0 for part in period.total.tenants) == near(60 * PRICE)


def test_report_has_no_tenants_without_the_option(ask: Callable[..., Answer]) -> None:
    (period,) = read(ask(FLEET, "--month", "2025-10", "--format", "json")).periods
    assert not any(row.tenants for row in (*period.rows, period.total))


def test_csv_by_tenant_has_the_sums_of_the_models(ask: Callable[..., Answer]) -> None:
    models = list(csv.DictReader(io.StringIO(ask(FLEET, "--month", "2025-10", "--format", "csv").out)))
    parts = list(csv.DictReader(io.StringIO(ask(FLEET, "--month", "2025-10", "--by-tenant", "--format", "csv").out)))
    assert [row["tenant"] for row in models] == ["", ""]
    assert [row["tenant"] for row in parts] == ["search", "acme", ""]
    for column in ("gpu_hours", "cost", "idle_cost", "input_tokens", "output_tokens"):
        sums = [sum(float(row[column] or 0) for row in rows) for rows in (models, parts)]
        assert sums[1] == pytest.approx(sums[0], abs=1e-5), column


def test_table_by_tenant_has_a_row_for_each_tenant(ask: Callable[..., Answer]) -> None:
    lines = ask(FLEET, "--month", "2025-10", "--by-tenant").out.splitlines()
    first = [line.split()[0] for line in lines if line.startswith(" ") and line.split()]
    assert first.count("search") == first.count("acme") == 2
