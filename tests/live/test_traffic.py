"""`rayhelm traffic`: rates, lengths and YAML from logs."""

import gzip
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rayhelm.cli.app import app
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import parse_fleet
from rayhelm.live.traffic.fleet_text import format_models
from rayhelm.live.traffic.records import read_lines
from rayhelm.live.traffic.summary import ModelTraffic, TrafficLog, summarize

START = datetime(2026, 11, 2, tzinfo=UTC).timestamp()
AZURE = """\
TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
2023-11-16 18:15:51.2224670,879,55
"""


def engine(at: float, *, ms: float = 500, **fields: Any) -> str:
    """Return a line of the engine, as the container `logs` writes it, of a request that arrives `at` seconds."""
    time = datetime.fromtimestamp(START + at + ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    record = {"time": time, "message": "engine request ended", "model": "chat", "request_id": f"r{at}"}
    return json.dumps(
        record | {"prompt_tokens": 100, "cached_tokens": 25, "generation_tokens": 10, "total_ms": ms} | fields
    )


def gateway(at: float, **fields: Any) -> str:
    time = datetime.fromtimestamp(START + at + 0.5, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    record = {"time": time, "request_id": f"r{at}", "tenant": "a", "model": "chat", "status": 200, "total_ms": 500}
    return json.dumps(record | {"termination_state": "--"} | fields)


def measure(*lines: str, window: float = 60, percentile: float = 99) -> dict[str, ModelTraffic]:
    log = TrafficLog()
    log.add(read_lines(lines))
    return summarize(log, window, percentile)


def one(lines: Iterable[str], **settings: float) -> ModelTraffic:
    (found,) = measure(*lines, **settings).values()
    return found


def test_even_arrivals_have_the_same_mean_and_peak_rate() -> None:
    found = one([engine(at) for at in range(0, 600, 2)])
    assert (found.requests, found.mean_rate, found.peak_rate, found.dispersion) == (300, 0.5, 0.5, 0)
    assert found.first.timestamp() == START


def test_burst_raises_peak_rate_and_dispersion_but_not_the_mean() -> None:
    baseline = [engine(at) for at in range(0, 6000, 60)]
    found = one([*baseline, *(engine(3000 + part / 100) for part in range(1, 600))], percentile=100)
    assert found.peak_rate == pytest.approx(10)
    assert found.mean_rate == pytest.approx((98 + 599) / 98 / 60)
    assert found.dispersion > 100


def test_rare_requests_are_planned_at_least_for_their_mean_rate() -> None:
    found = one([engine(at) for at in (0, 30_000, 60_000, 80_000)])
    assert found.peak_rate == found.mean_rate > 0


def test_request_in_both_logs_is_counted_once() -> None:
    found = one([gateway(1), engine(1), gateway(2), gateway(3, status=429), gateway(4, status=503)])
    assert (found.requests, found.rejected) == (3, 1)
    assert (found.input_tokens, found.output_tokens, found.cached_share) == (100, 10, 0.25)


def test_several_answers_of_a_request_are_one_prompt() -> None:
    found = one([engine(1), engine(1), engine(1)])
    assert (found.requests, found.input_tokens, found.output_tokens) == (1, 100, 30)


def test_models_are_measured_separately() -> None:
    found = measure(engine(1), engine(2, model="embed", generation_tokens=0))
    assert list(found) == ["chat", "embed"]
    assert found["embed"].output_tokens == 0


def test_lengths_have_mean_and_95th_percentile() -> None:
    found = one([engine(at, prompt_tokens=at) for at in range(1, 101)])
    assert (found.input_tokens, found.input_tokens_p95) == (50.5, 95)


def test_hours_of_the_day_are_means_over_the_days() -> None:
    """Each day of three: one request a minute from 9 to 10, and one request an hour else."""
    busy = [engine(day * 86400 + 9 * 3600 + 60 * minute) for day in range(3) for minute in range(60)]
    calm = [engine(day * 86400 + hour * 3600 + 1) for day in range(3) for hour in range(24) if hour != 9]
    found = one([*busy, *calm, engine(3 * 86400)])
    assert found.hourly_rates[9] == pytest.approx(1 / 60)
    assert found.hourly_rates[15] == pytest.approx(1 / 3600)
    assert one([*busy[:60]]).hourly_rates == ()


@pytest.mark.parametrize(
    "line",
    [
        f"[pod/gateway-0/haproxy] {engine(1)}",
        json.dumps({"log": engine(1), "stream": "stdout"}),
        json.dumps({"kubernetes": {}, "log": json.loads(engine(1))}),
        json.dumps({"body": engine(1)}),
    ],
)
def test_lines_of_log_agents_are_read(line: str) -> None:
    assert one([line]).requests == 1


@pytest.mark.parametrize(
    "line",
    [
        "", "text", "{", "[]", "{}", "null", '{"message": "engine request ended"}', '{"log": "{"}', "{" * 5000,
        '{"a":' * 5000, engine(1, time="yesterday"), engine(1, model=None), gateway(1, status="200"),
        gateway(1, model="-"), json.dumps({"log": {"log": {"log": 1}}}), '{"message": {"message": NaN}}',
    ],
)  # fmt: skip
def test_line_about_no_request_is_skipped(line: str) -> None:
    log = TrafficLog()
    log.add(read_lines([engine(5), line]))
    assert (len(log.requests), log.skipped) == (1, 1)


def test_times_far_apart_need_no_memory_for_the_time_between() -> None:
    assert one([engine(0, time="0002-01-01T00:00:00Z"), engine(1, time="9998-01-01T00:00:00Z")], window=1).requests == 2


def test_printed_models_are_accepted_in_a_fleet_file() -> None:
    text = format_models(measure(*(engine(at) for at in range(0, 600, 7)), *(gateway(at, model="b") for at in (1, 2))))
    assert "# b: no line of the engine's log" in text
    whole = text.replace("  chat:", "  chat:\n    source: Qwen/Qwen2.5-7B-Instruct")
    fleet = parse_fleet(parse_document(f"fleet: a\npools: {{p: {{gpu: L4-24GB, nodes: 1}}}}\n{whole}", "f.yaml")).fleet
    traffic = fleet.models["chat"].traffic
    assert traffic is not None
    assert (traffic.input_tokens, traffic.output_tokens, traffic.shared_prefix) == (100, 10, 0.25)
    assert 9 / 60 <= traffic.requests_per_second <= 0.16


def run(*words: str) -> tuple[int, str]:
    answer = CliRunner().invoke(app, ["traffic", *words])
    return answer.exit_code, answer.output


def test_command_reads_traces_compressed_and_with_a_name(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv.gz"
    trace.write_bytes(gzip.compress(f"\ufeff{AZURE}broken,1\n".encode()))
    answer = CliRunner().invoke(app, ["traffic", str(trace), "--model", "llama", "--format", "json"])
    assert answer.exit_code == 0
    found = json.loads(answer.stdout)
    assert found["models"]["llama"]["input_tokens"] == pytest.approx((374 + 396 + 879) / 3)
    assert found["skipped"] == 1


def test_command_writes_the_yaml_to_a_new_file_only(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("\n".join(engine(at) for at in range(0, 200_000, 1000)))
    code, text = run(str(tmp_path / "log"), "-o", str(tmp_path / "traffic.yaml"))
    assert code == 0
    assert "hours 0 to 23 UTC" in text
    assert "requestsPerSecond" in (tmp_path / "traffic.yaml").read_text()


def test_command_never_overwrites_a_file(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(engine(1))
    (tmp_path / "fleet.yaml").write_text("mine")
    code, text = run(str(tmp_path / "log"), "-o", str(tmp_path / "fleet.yaml"))
    assert code == 2
    assert "is not overwritten" in text.replace("\n", " ")
    assert (tmp_path / "fleet.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        ("no JSON", (), "none is about a request"),
        ("", (), "the files are empty"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n", (), "or a trace has a header only"),
        ("TIMESTAMP,ContextTokens\n1,2\n", (), "line 1: the trace has no column GeneratedTokens"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,1\n", (), "line 2: Invalid isoformat string"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,-5,1\n", (), "line 2: -5 tokens"),
        (gateway(1, status=401), (), "every request was rejected"),
        (engine(1), ("--model", "chap"), "did you mean `chat`"),
    ],
)
def test_command_says_why_it_found_no_traffic(
    content: str, words: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    (tmp_path / "log").write_text(content)
    answer = CliRunner().invoke(app, ["traffic", str(tmp_path / "log"), *words])
    assert answer.exit_code == 2
    assert message in answer.output


def test_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.gz").write_bytes(b"\x1f\x8bnot gzip")
    for file in (tmp_path, tmp_path / "none", tmp_path / "bad.gz"):
        code, text = run(str(file))
        assert code == 2
        assert str(file) in text.replace("\n", "")
