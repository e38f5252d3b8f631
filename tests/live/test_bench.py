"""`rayhelm bench`: figures of a load, the comparison with the plan, and measured rows in a plan. The load itself is
sent in tests/serve."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rayhelm.errors import FleetError
from rayhelm.fleet.measurements import FleetMeasurements, parse_measurements
from rayhelm.fleet.speed_measurements import SpeedMeasurement
from rayhelm.live.bench.compare import choose_concurrency, compare, merge_models, place
from rayhelm.live.bench.load import BenchLoad, BenchResult, read_result
from rayhelm.live.probe.store import format_measurements, merge
from rayhelm.planner.plan import Plan
from rayhelm.planner.planner import plan_fleet
from rayhelm.planner.speed.estimate import Interval
from rayhelm.planner.speed.query import SpeedQuery, answer_query
from shared.command import Answer, run
from shared.fleets import load

Rayhelm = Callable[..., Answer]
FLEET = """\
fleet: bench
pools:
  gpus: {gpu: H100-SXM-80GB, nodes: 2, gpusPerNode: 8, price: 4.00 USD/h}
models:
  chat:
    source: Qwen/Qwen3-32B
    context: 8192
    traffic: {requestsPerSecond: 1, inputTokens: 1000, outputTokens: 200}
  embed:
    source: BAAI/bge-large-en-v1.5
    task: embed
"""
LOAD = BenchLoad(concurrency=4, requests=3, input_tokens=1000, output_tokens=3)
ROW: dict[str, Any] = {
    "source": "Qwen/Qwen3-32B",
    "gpus": ["H100-SXM-80GB"],
    "tensor_parallel_size": 1,
    "replicas": 1,
    "concurrency": 4,
    "input_tokens": 1000,
    "output_tokens": 200,
    "ttft_s": 0.2,
    "tpot_s": 0.05,
    "output_tokens_per_second": 80,
    "requests": 16,
    "failed": 0,
    "vllm": "0.29.0",
    "measured_at": "2026-11-01T00:00:00Z",
}


@pytest.fixture
def rayhelm(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Rayhelm:
    return lambda *arguments: run(capsys, monkeypatch, *arguments)


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    return path


def plan(*rows: dict[str, Any], model: str = "chat") -> Plan:
    measured = FleetMeasurements.model_validate({"models": {model: rows}, "file": "m.yaml"}) if rows else None
    return plan_fleet(replace(load(FLEET), measured=measured))


def planned_row(**keys: Any) -> dict[str, Any]:
    """A measurement of the planned split and load, twice as slow as planned."""
    chat = plan().models["chat"]
    assert chat.estimate.concurrency
    assert chat.estimate.tpot_s
    split = {"tensor_parallel_size": chat.tensor_parallel_size, "replicas": chat.replicas}
    concurrency = chat.estimate.concurrency * chat.replicas
    return {**ROW, **split, "concurrency": concurrency, "tpot_s": chat.estimate.tpot_s * 1.3, **keys}


def test_failed_requests_are_counted_by_reason_and_left_out_of_the_figures() -> None:
    answer = {
        "errors": ["", "Traceback ...\nTimeoutError: late", "", ""],
        "input_lens": [1010, 0, 1030, 0],
        "output_lens": [3, 0, 5, 0],
        "ttfts": [0.1, 0.0, 0.3, 0.0],
        "itls": [[0.02, 0.04], [], [0.01, 0.01, 0.01, 0.01], []],
        "duration": 2.0,
    }
    found = read_result(LOAD, answer)
    assert (found.requests, found.errors) == (2, {"TimeoutError: late": 1, "no output": 1})
    assert (found.input_tokens, found.output_tokens, found.output_tokens_per_second) == (1020, 4, 4)
    assert found.ttft_s == pytest.approx(0.2)
    assert found.tpot_s == pytest.approx(0.02)


def test_load_without_an_answer_has_no_figures() -> None:
    answer = {"errors": ["refused"], "input_lens": [9], "output_lens": [0], "ttfts": [0], "itls": [[]], "duration": 1}
    assert read_result(LOAD, answer) == BenchResult(LOAD, 0, {"refused": 1})


@pytest.mark.parametrize(
    ("value", "is_time", "where"),
    [
        (1.5, True, "as planned"),
        (0.5, True, "faster"),
        (3, True, "slower"),
        (3, False, "faster"),
        (0.5, False, "slower"),
    ],
)
def test_figure_is_placed_against_its_interval(value: float, is_time: bool, where: str) -> None:
    assert place(value, Interval(low=1, mid=1.5, high=2), is_time=is_time) == where


def test_expected_speed_is_of_all_replicas() -> None:
    chat = plan().models["chat"]
    result = BenchResult(replace(LOAD, concurrency=8), 8, {}, 1000, 200, 0.1, 0.1, 0.02, 0.02, 300)
    one, two = compare(replace(result, load=LOAD), chat, 1).expected, compare(result, chat, 2).expected
    assert one
    assert two
    assert two.tpot_s == one.tpot_s
    assert two.output_tokens_per_second.mid == pytest.approx(2 * one.output_tokens_per_second.mid)


def test_expected_speed_is_of_all_data_parallel_ranks() -> None:
    ranks = FLEET.replace("Qwen/Qwen3-32B", "Qwen/Qwen3-30B-A3B").replace(
        "    context: 8192\n", "    context: 8192\n    parallelism: {tensor: 1, data: 4}\n"
    )
    chat = plan_fleet(load(ranks)).models["chat"]
    result = BenchResult(replace(LOAD, concurrency=64), 64, {}, 1000, 200, 0.1, 0.1, 0.02, 0.02, 300)
    expected = compare(result, chat, 1).expected
    query = SpeedQuery(
        model=chat.source,
        gpu=chat.gpu,
        data_parallel_size=4,
        expert_parallel=True,
        input_tokens=1000,
        output_tokens=200,
        concurrency=64,
        engine={"max_num_seqs": chat.max_num_seqs, "max_model_len": chat.max_model_len},
    )
    assert expected == answer_query(query)


def test_default_loads_are_one_request_the_planned_load_and_the_target() -> None:
    chat = plan().models["chat"]
    first, *_, last = choose_concurrency(chat)
    assert (first, last) == (1, chat.target_ongoing_requests * chat.replicas)


def test_plan_uses_what_was_measured_on_its_own_split() -> None:
    before, after = (found.models["chat"].estimate for found in (plan(), plan(planned_row())))
    assert before.tpot_s
    assert after.tpot_s
    assert after.tpot_s == pytest.approx(1.3 * before.tpot_s, rel=0.08)


@pytest.mark.parametrize(
    "keys",
    [
        {"tensor_parallel_size": 8},
        {"data_parallel_size": 2},
        {"gpus": ["H200-SXM-141GB"]},
        {"gpu_fraction": 0.5},
    ],
)
def test_plan_ignores_rows_of_another_split(keys: dict[str, Any]) -> None:
    assert plan(planned_row(**keys)).models["chat"].estimate == plan().models["chat"].estimate


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"source": "Qwen/Qwen3-14B"}, "other weights were served then"),
        ({"engine": {"max_num_seqs": 8}}, "other engine arguments were set then"),
        ({"failed": 3}, "3 of 19 requests failed"),
        ({"requests": 2}, "only 2 requests"),
    ],
)
def test_doubtful_rows_are_not_used_and_the_plan_says_why(keys: dict[str, Any], why: str) -> None:
    found = plan(planned_row(**keys))
    assert found.models["chat"].estimate == plan().models["chat"].estimate
    (warning,) = (text for text in found.warnings if "m.yaml" in text)
    assert f"not used, {why}; measure again: rayhelm bench FLEET --model chat" in warning


def test_rows_of_an_unknown_model_are_warned_of() -> None:
    assert "m.yaml: model `gone` is not in the fleet file: its measurements are not used; remove them" in (
        plan(ROW, model="gone").warnings
    )


def test_rows_of_the_same_load_are_replaced_and_others_kept() -> None:
    row = SpeedMeasurement.model_validate(ROW)
    other, newer = row.model_copy(update={"concurrency": 9}), row.model_copy(update={"tpot_s": 0.01})
    earlier = FleetMeasurements(models={"chat": (row, other)})
    assert merge_models(earlier, "chat", [newer]).models["chat"] == (newer, other)


def test_probe_keeps_the_rows_of_models() -> None:
    earlier = FleetMeasurements.model_validate({"models": {"chat": [ROW]}})
    written = format_measurements(merge(earlier, {}))
    assert parse_measurements(written, "m.yaml").models["chat"][0].tpot_s == 0.05


def test_rows_of_a_model_with_prefill_and_decode_replicas_are_reported_as_unused() -> None:
    roles = FLEET.replace(
        "    context: 8192\n", "    context: 8192\n    parallelism: {tensor: 2, prefillDecode: true}\n"
    )
    roles = roles.replace("price:", "network: rdma-400g, rdmaResource: rdma/hca, price:")
    measured = FleetMeasurements.model_validate({"models": {"chat": [ROW]}, "file": "m.yaml"})
    (warning,) = [each for each in plan_fleet(replace(load(roles), measured=measured)).warnings if "m.yaml" in each]
    assert warning.endswith("not used, prompts and answers of the model are computed on different replicas")


def test_file_without_a_measurement_is_refused() -> None:
    with pytest.raises(FleetError, match="neither `pools` nor `models`"):
        parse_measurements("{}\n", "m.yaml")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--url", "llm.example.com"], "is not an address"),
        (
            ["--url", "https://llm.example.com/v1"],
            "ends with /v1, which is added; write `--url https://llm.example.com`",
        ),
        (["--url", "https://a", "--model", "chatt"], "--model `chatt` is not in the fleet file; did you mean `chat`?"),
        (["--url", "https://a", "--model", "embed"], "has the task embed, and the load is of chat requests"),
        (["--url", "http://["], "is not an address"),
        (["--url", "http://a:port"], "is not an address"),
        (["--url", "https://a", "--input-tokens", "8192"], "are more than max_model_len 8192"),
        (["--url", "https://a", "--key-file", "none"], "--key-file none: No such file or directory"),
    ],
)
def test_wrong_options_are_refused(rayhelm: Rayhelm, fleet: Path, options: list[str], message: str) -> None:
    found = rayhelm("bench", str(fleet), *options)
    assert found.code == 2
    assert message in found.err


def test_key_file_holds_one_key(rayhelm: Rayhelm, fleet: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("one\ntwo\n")
    found = rayhelm("bench", str(fleet), "--url", "https://a", "--key-file", str(tmp_path / "key"))
    assert (found.code, "it must hold one API key" in found.err) == (2, True)


@pytest.mark.parametrize(
    "source", ["s3://acme/qwen", "pvc://shared/qwen", f"oci://registry.example/q@sha256:{'4f' * 32}"]
)
def test_tokenizer_is_asked_for_when_the_load_generator_cannot_read_the_source(
    rayhelm: Rayhelm, tmp_path: Path, source: str
) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET.replace("source: Qwen/Qwen3-32B", f"source: {source}\n    architecture: Qwen/Qwen3-32B"))
    found = rayhelm("bench", str(path), "--model", "chat", "--url", "https://a")
    assert found.code == 2
    assert f"does not read a tokenizer from {source}" in found.err
    assert "--tokenizer" in found.err


def test_versions_of_one_served_model_are_not_written_as_one(rayhelm: Rayhelm, tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    version = "    servedAs: {model: chat, version: next, weight: 10}\n"
    source = "    source: Qwen/Qwen3-32B\n    context: 8192\n"
    path.write_text(FLEET + f"  chat-next:\n{source}{version}")
    found = rayhelm("bench", str(path), "--model", "chat", "--url", "https://a", "-o", str(tmp_path / "m.yaml"))
    assert found.code == 2
    assert "are both served as `chat`: the figures would be of a mixture" in found.err


def test_endpoint_that_does_not_answer_ends_with_3(
    rayhelm: Rayhelm, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rayhelm.live.bench.load.find_spec", lambda name: object())
    found = rayhelm("bench", str(fleet), "--url", "http://127.0.0.1:1", "--model", "chat")
    assert (found.code, "http://127.0.0.1:1 does not answer" in found.err) == (3, True)


@pytest.fixture
def measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A load generator that answers the first load, and fails at the second."""

    @contextmanager
    def open_client(*_: str) -> Iterator[object]:
        yield SimpleNamespace(measure=measure)

    def measure(load: BenchLoad, seed: int) -> BenchResult:
        if load.concurrency > 1:
            raise FleetError("the generator ended")
        return BenchResult(load, 10, {}, 1000, 200, 0.1, 0.1, 0.02, 0.02, 50)

    monkeypatch.setattr("rayhelm.cli.bench.check_vllm", lambda: None)
    monkeypatch.setattr("rayhelm.cli.bench.check_endpoint", lambda *_: None)
    monkeypatch.setattr("rayhelm.cli.bench.open_client", open_client)


@pytest.mark.usefixtures("measured_once")
def test_loads_before_a_failure_are_shown_and_written(rayhelm: Rayhelm, fleet: Path, tmp_path: Path) -> None:
    rows = tmp_path / "m.yaml"
    load = ["--concurrency", "1", "--concurrency", "4", "-o", str(rows)]
    found = rayhelm("bench", str(fleet), "--url", "https://a", "--model", "chat", *load)
    assert (found.code, "the generator ended" in found.err, "20 ms" in found.out) == (1, True, True), found
    assert [row.concurrency for row in parse_measurements(rows.read_text(), "m.yaml").models["chat"]] == [1]


def test_missing_vllm_ends_with_3(rayhelm: Rayhelm, fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rayhelm.live.bench.load.find_spec", lambda name: None)
    found = rayhelm("bench", str(fleet), "--url", "http://127.0.0.1:1", "--model", "chat")
    assert (found.code, "vLLM is not installed" in found.err) == (3, True)
