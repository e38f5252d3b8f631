"""`rayhelm cost`: answers of a server that is no good Prometheus, periods, and the formula of the plan."""

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from rayhelm.errors import MissingError, UsageError
from rayhelm.fleet.load import load_fleet
from rayhelm.live.cost.client import TOKEN_VARIABLE, open_client, read_headers
from rayhelm.live.cost.figures import complete, plan_figures
from rayhelm.live.cost.periods import last_period, month_period, split_into_chunks
from rayhelm.live.cost.planned import plan_costs
from rayhelm.planner.planner import plan_fleet
from shared.command import run
from shared.ports import reserve_port

NOW = datetime(2026, 3, 10, 12, 34, 56, tzinfo=UTC)
FLEETS = sorted((Path(__file__).parents[2] / "values").glob("*/fleet.yaml"))


def check(answer: Callable[[httpx.Request], httpx.Response]) -> None:
    with open_client("http://prometheus.test/api/v1", {}, httpx.MockTransport(answer)) as client:
        client.check()


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (httpx.Response(401), rf"refuses the credentials \(401\)\n.*{TOKEN_VARIABLE}"),
        (httpx.Response(403, text="no"), r"refuses the credentials \(403\)"),
        (httpx.Response(302, headers={"location": "https://login.test/a?secret=1"}), r"redirects to https://login.test/a\n"),
        (httpx.Response(200, text="<html>"), "is not a Prometheus: 200 without an answer of its API"),
        (httpx.Response(404, json={"message": "no"}), "is not a Prometheus: 404"),
        (httpx.Response(503, json={"status": "error", "error": "query timed out"}), "refuses a query: query timed out"),
    ],
)  # fmt: skip
def test_client_explains_an_answer_that_is_an_error(response: httpx.Response, message: str) -> None:
    with pytest.raises(MissingError, match=message):
        check(lambda request: response)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"), "SSL_CERT_FILE"),
        (httpx.ConnectError("Connection refused"), "port-forward"),
        (httpx.ReadTimeout("slow"), "does not answer in time"),
    ],
)
def test_client_explains_a_failed_connection(error: httpx.TransportError, message: str) -> None:
    def fail(request: httpx.Request) -> httpx.Response:
        raise error

    with pytest.raises(MissingError, match=message):
        check(fail)


def test_client_sends_token_and_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "secret")
    file = tmp_path / "headers"
    file.write_text("# tenant\nX-Scope-OrgID: team\n")
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"status": "success", "data": {"result": []}})

    with open_client("http://prometheus.test/base/", read_headers(file), httpx.MockTransport(answer)) as client:
        client.check()
    assert seen[0].headers["authorization"] == "Bearer secret"
    assert seen[0].headers["x-scope-orgid"] == "team"
    assert seen[0].url == "http://prometheus.test/base/api/v1/query"


def test_wrong_header_is_refused_without_its_text(tmp_path: Path) -> None:
    file = tmp_path / "headers"
    file.write_text("\nBearer secret\n")
    with pytest.raises(UsageError, match=r"headers:2: is not a header") as refused:
        read_headers(file)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("url", ["prometheus:9090", "localhost", "file:///etc", "http://", "http://[::1"])
def test_wrong_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="is not a URL"), open_client(url, {}):
        pass


def test_url_with_a_password_is_refused_without_the_password() -> None:
    url = "https://me:secret@p.test:9090"
    with pytest.raises(UsageError, match=r"--prometheus https://p\.test:9090`") as refused, open_client(url, {}):
        pass
    assert "secret" not in str(refused.value)


def test_closed_port_ends_with_3(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with reserve_port() as port:
        answer = run(capsys, monkeypatch, "cost", "--prometheus", f"http://127.0.0.1:{port}", "--last", "1d")
    assert answer.code == 3
    assert "does not answer" in answer.err


def test_output_is_refused_before_prometheus_is_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer = run(capsys, monkeypatch, "cost", "--prometheus", "http://127.0.0.1:9", "-o", str(tmp_path))
    assert answer.code == 1
    assert f"{tmp_path}: cannot be written: it is a folder" in answer.err
    assert "rayhelm cost ... -o FILE" in answer.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--month", "2999-01"), "is in the future"),
        (("--month", "2026-13"), "is not a month"),
        (("--month", "October"), "is not a month"),
        (("--last", "30"), "is not a period"),
        (("--last", "500d"), "at most 400 days"),
        (("--last", "1d", "--month", "2025-01"), "either --month or --last"),
    ],
)
def test_wrong_period_ends_with_2(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = run(capsys, monkeypatch, "cost", "--prometheus", "http://127.0.0.1:1", *arguments)
    assert answer.code == 2
    assert message in answer.err


def test_month_is_a_calendar_month_in_utc() -> None:
    february = month_period("2026-02", NOW)
    assert (february.start, february.end) == (datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC))
    assert february.hours == 28 * 24


def test_current_month_ends_at_the_last_full_hour() -> None:
    assert month_period("2026-03", NOW).end == datetime(2026, 3, 10, 12, tzinfo=UTC)


def test_last_period_ends_now() -> None:
    period = last_period("2w", NOW)
    assert (period.hours, period.end) == (14 * 24, datetime(2026, 3, 10, 12, 34, tzinfo=UTC))


@pytest.mark.parametrize("text", ["1h", "25h", "48h", "49h", "400d"])
def test_chunks_cover_the_period_within_the_limit_of_prometheus(text: str) -> None:
    period = last_period(text, NOW)
    chunks = list(split_into_chunks(period))
    assert sum(chunk.hours for chunk in chunks) == period.hours
    assert [chunk.end for chunk in chunks[:-1]] == [chunk.start for chunk in chunks[1:]]
    assert all(chunk.hours * 3600 / period.step_s < 11_000 for chunk in chunks)


@pytest.mark.parametrize("path", FLEETS, ids=lambda path: path.parent.name)
def test_cost_of_the_planned_load_equals_the_plan(path: Path) -> None:
    plan = plan_fleet(load_fleet(path))
    for service in plan_costs(path).values():
        for model in service.models:
            of_plan, hour = plan.models[model.name], plan_figures(model, 1)
            assert (hour.gpu_hours, hour.cost) == (of_plan.gpus, of_plan.price_per_hour)
            assert hour.cost_per_million_output_tokens == of_plan.price_per_million_output_tokens
            measured = complete(hour.gpu_hours, hour.cost, hour.requests, hour.input_tokens, hour.output_tokens)
            planned = of_plan.price_per_million_output_tokens
            assert measured.cost_per_million_output_tokens == (planned and pytest.approx(planned, abs=1e-4))


def test_cli_does_not_import_the_cost_package() -> None:
    code = (
        "import sys, rayhelm.cli;"
        " print([name for name in sys.modules if name.startswith(('rayhelm.live.cost', 'httpx'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "[]"
