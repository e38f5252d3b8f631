"""`rayhelm estimate`, and the model of speed behind it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rayhelm.errors import FleetError
from rayhelm.facts import load_catalog
from rayhelm.planner.shape import ReplicaShape
from rayhelm.planner.speed import query
from rayhelm.planner.speed.build import build_replica
from rayhelm.planner.speed.coefficients import load_coefficients
from rayhelm.planner.speed.estimate import SpeedEstimate, estimate_speed
from rayhelm.planner.speed.model import compute_speed
from rayhelm.planner.speed.query import SpeedQuery, answer_lines, answer_query
from rayhelm.planner.speed.replica import Load, Replica, Speculation, StageLink
from rayhelm.planner.speed.rows import load_rows
from shared.command import Answer, run

Rayhelm = Callable[..., Answer]
LLAMA_405B = "meta-llama/Llama-3.1-405B-Instruct-FP8"
MEASURED = {
    "model": "Qwen/Qwen3-32B",
    "gpu": "H100-SXM-80GB",
    "tensor_parallel_size": 2,
    "input_tokens": 1024,
    "output_tokens": 512,
    "concurrency": 64,
}


@pytest.fixture
def rayhelm(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Rayhelm:
    return lambda *arguments: run(capsys, monkeypatch, *arguments)


def ask(**keys: Any) -> SpeedEstimate:
    return answer_query(SpeedQuery.model_validate(MEASURED | keys))


def replica_of(model: str, gpu: str, tp: int, pp: int = 1, **keys: Any) -> Replica:
    found = load_catalog().gpu(gpu)
    shape = ReplicaShape(tp, pp)
    replica, _ = build_replica(load_catalog().model(model), [found] * pp, shape, context=4096, **keys)
    return replica


def test_estimate_of_a_measured_load_is_the_measurement() -> None:
    answer = ask()
    assert answer.basis == "measured"
    assert answer.tpot_s.mid == pytest.approx(0.028507, rel=0.01)
    assert answer.ttft_s.mid == pytest.approx(0.38594, rel=0.01)
    assert "1024x512_c64_tp2" in answer.sources[0]


def test_estimate_between_measured_loads_is_interpolated() -> None:
    answer = ask(concurrency=48)
    assert answer.basis == "interpolated"
    assert ask(concurrency=32).tpot_s.mid < answer.tpot_s.mid < ask().tpot_s.mid


def test_estimate_of_an_unmeasured_model_has_wider_intervals() -> None:
    answer = ask(model="Qwen/Qwen3-14B")
    assert (answer.basis, answer.sources) == ("model", ())
    assert answer.tpot_s.high / answer.tpot_s.low > ask().tpot_s.high / ask().tpot_s.low


@pytest.mark.parametrize(
    ("keys", "note"),
    [
        ({"model": "Qwen/Qwen3-235B-A22B-FP8", "gpu": "H200-SXM-141GB"}, "experts in 8 or 16 bits"),
        ({"model": "Qwen/Qwen3-8B", "concurrency": 512}, "512 requests in flight in one engine"),
        ({"model": "Qwen/Qwen3-8B", "concurrency": 140}, ""),
        ({"model": "openai/gpt-oss-20b"}, ""),
    ],
)
def test_estimate_says_where_no_measurement_is_like_it(keys: dict[str, Any], note: str) -> None:
    assert " ".join(ask(**keys).notes) == (f"no measurement like this: {note}" if note else "")


def test_tokens_per_second_follow_from_the_times() -> None:
    answer = ask(model="Qwen/Qwen3-14B")
    seconds = answer.ttft_s.mid + 511 * answer.tpot_s.mid
    assert answer.output_tokens_per_second.mid == pytest.approx(64 * 512 / seconds, rel=0.01)


def test_slow_network_lengthens_the_time_per_token_of_a_pipeline() -> None:
    keys = {"model": LLAMA_405B, "tensor_parallel_size": 8, "pipeline_parallel_size": 2, "concurrency": 16}
    fast, slow = ask(network="rdma-400g", **keys), ask(network="ethernet-1g", **keys)
    assert slow.tpot_s.mid > 1.1 * fast.tpot_s.mid
    assert slow.ttft_s.mid > 1.1 * fast.ttft_s.mid


def test_latency_of_the_network_lengthens_the_time_per_token() -> None:
    replica = replace(replica_of(LLAMA_405B, "H100", 8, 2), link=StageLink(10.0, 10e-6))
    far = replace(replica, link=StageLink(10.0, 20e-3))
    load = Load(1024, 512, 8)
    assert compute_speed(far, load).tpot_s - compute_speed(replica, load).tpot_s == pytest.approx(0.02, abs=1e-3)


def test_overfull_link_is_refused_with_its_rate() -> None:
    replica = replace(replica_of("Qwen/Qwen3-8B", "H100", 1, 2), link=StageLink(0.02, 1e-4))
    with pytest.raises(FleetError, match=r"the link carries 0\.02 GB/s"):
        estimate_speed(replica, Load(2000, 100, 64))


def test_requests_beyond_the_kv_cache_wait() -> None:
    answer = ask(input_tokens=4096, output_tokens=1024, concurrency=400)
    assert answer.bound_by == "KV cache"
    assert answer.running < 400
    assert answer.ttft_s.mid > 10


def test_no_more_requests_run_than_are_in_flight() -> None:
    assert ask(data_parallel_size=8, tensor_parallel_size=1, concurrency=1).running == 1


@pytest.mark.parametrize(
    ("keys", "note"),
    [
        ({"input_tokens": 40_000}, "they have 40,512 tokens, and the longest context is 40,960"),
        ({"input_tokens": 40_500}, "they have 41,012 tokens, and the longest context is 40,960"),
        ({"engine": {"max_model_len": 1500}}, "they have 1,536 tokens, and the longest context is 1,500"),
    ],
)
def test_requests_beyond_the_longest_context_have_a_note(keys: dict[str, Any], note: str) -> None:
    is_refused = "40,512" not in note
    assert any(note in each for each in ask(**keys).notes) == is_refused


def test_lower_max_num_seqs_than_measured_is_not_called_measured() -> None:
    answer = ask(engine={"max_num_seqs": 8})
    assert (answer.basis, answer.bound_by, answer.running) == ("model", "max_num_seqs", 8)


@pytest.mark.parametrize(
    ("tokens", "note"),
    [
        ((32_000, 16), "prefill-bound: prompts need all that a step computes"),
        (
            (9000, 50),
            "no measured row has prompts of 9,000 tokens (most: 8,192) or responses of 50 tokens (fewest: 100)",
        ),
        ((8192, 1024), ""),
    ],
)
def test_load_that_no_row_reaches_has_a_note_and_a_wide_interval(tokens: tuple[int, int], note: str) -> None:
    keys = {"model": "Qwen/Qwen3-14B", "concurrency": 16} | dict(
        zip(("input_tokens", "output_tokens"), tokens, strict=True)
    )
    answer, usual = ask(**keys), ask(model="Qwen/Qwen3-14B")
    assert " ".join(answer.notes).startswith(note) if note else not answer.notes
    widths = [each.ttft_s.high / each.ttft_s.low for each in (answer, usual)]
    assert widths[0] > 1.5 * widths[1] if note else widths[0] == pytest.approx(widths[1], rel=0.01)


def test_prompts_beyond_the_capacity_of_a_step_wait_instead_of_slowing_others() -> None:
    one, many = (compute_speed(replica_of("Qwen/Qwen3-14B", "H100", 1), Load(16_000, 8, count)) for count in (8, 32))
    assert many.is_prefill_bound
    assert many.tpot_s == pytest.approx(one.tpot_s, rel=0.01)
    assert many.ttft_s > 3.5 * one.ttft_s


def test_smaller_steps_shorten_the_time_per_token_and_lengthen_the_first() -> None:
    load = {"model": "Qwen/Qwen3-14B", "input_tokens": 16_000, "output_tokens": 16, "concurrency": 8}
    small, large = (ask(engine={"max_num_batched_tokens": size}, **load) for size in (2048, 16_384))
    assert small.tpot_s.mid < 0.5 * large.tpot_s.mid
    assert small.ttft_s.mid > large.ttft_s.mid


def test_speculative_decoding_multiplies_tokens_by_accepted_drafts() -> None:
    assert Speculation(3, 0.0).tokens_per_step == 1
    assert Speculation(3, 0.5).tokens_per_step == pytest.approx(1.875)
    config = {"num_speculative_tokens": 3, "acceptance_rate": 0.7}
    assert ask(engine={"speculative_config": config}, concurrency=4).tpot_s.mid < 0.6 * ask(concurrency=4).tpot_s.mid


def test_all_reduce_over_pcie_costs_more_than_over_nvlink() -> None:
    load = Load(1024, 512, 32)
    parts = {gpu: compute_speed(replica_of("Qwen/Qwen3-32B", gpu, 4), load).parts for gpu in ("H100", "L40S")}
    assert parts["L40S"]["all_reduce_bytes"] > 20 * parts["H100"]["all_reduce_bytes"]


def test_expert_parallel_ranks_exchange_their_tokens() -> None:
    replica, load = replica_of("Qwen/Qwen3-30B-A3B", "H100", 1), Load(1024, 512, 32)
    ranks = replace(replica, shape=ReplicaShape(dp=4, has_expert_parallel=True))
    assert compute_speed(replica, load).parts["all_reduce_bytes"] == 0
    assert compute_speed(ranks, load).parts["all_reduce_bytes"] > 0


def test_more_requests_never_shorten_the_time_per_token() -> None:
    for model in ("Qwen/Qwen3-14B", "Qwen/Qwen3-30B-A3B", "deepseek-ai/DeepSeek-V3"):
        replica = replica_of(model, "H200", 8)
        times = [compute_speed(replica, Load(1000, 300, count)).tpot_s for count in (1, 2, 8, 64, 256)]
        assert times == sorted(times)


def test_efficiencies_stay_below_one() -> None:
    fitted = load_coefficients()
    for form in ("bf16", "fp8", "fp4", "int4"):
        assert fitted.memory_efficiency[form] / fitted.tpot["dense_weights"] < 1
        assert fitted.compute_efficiency[form] / fitted.tpot["prefill_compute"] <= 0.7
    assert fitted.memory_efficiency["bf16_experts"] / fitted.tpot["expert_weights_native"] < 1
    assert 1 / fitted.tpot["kv_cache"] < 1


def test_batch_answers_each_line_in_order(rayhelm: Rayhelm, tmp_path: Path) -> None:
    lines = [json.dumps(MEASURED), "not JSON", json.dumps(MEASURED | {"gpu": "H9"}), json.dumps(MEASURED | {"tp": 2})]
    path = tmp_path / "queries.jsonl"
    path.write_text("\n".join(lines))
    answer = rayhelm("estimate", "--batch", str(path), "--format", "json")
    assert answer.code == 0
    first, *wrong = map(json.loads, answer.out.splitlines())
    assert first["tpot_s"].keys() == {"low", "mid", "high"}
    assert first.keys() >= {"ttft_s", "output_tokens_per_second", "basis", "bound_by"}
    assert ["error" in line for line in wrong] == [True, True, True]
    assert "tp: Extra inputs are not permitted" in wrong[2]["error"]


def test_batch_answers_each_odd_line_with_one_line(rayhelm: Rayhelm, tmp_path: Path) -> None:
    right = json.dumps(MEASURED)
    lines: list[tuple[bytes, str]] = [
        (b"", "the line is not JSON"),
        (b"  ", "the line is not JSON"),
        (right.encode() + b"\r", ""),
        (b"[" * 100_000, "the line is not JSON"),
        (b"[]", "valid dictionary"),
        (b'{"gpu": "H100"}', "concurrency: Field required"),
        (right.replace("Qwen3", "\f").encode(), "the line is not JSON"),  # JSON allows no form feed in a string
        (right.replace("Qwen3-32B", "Qwen\u2028").encode(), "unknown model"),
        (right.encode().replace(b"Qwen3", b"\xff\xfe"), "unknown model"),
        (right.replace("1024", "1e999").encode(), "input_tokens"),
        (right.replace("64", '"64"').encode(), ""),
        (right.encode(), ""),
    ]
    path = tmp_path / "queries.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b"\n".join(line for line, _ in lines) + b"\n")
    answer = rayhelm("estimate", "--batch", str(path), "--format", "json")
    assert answer.code == 0
    found = [json.loads(line) for line in answer.out.removesuffix("\n").split("\n")]
    assert len(found) == len(lines)
    for given, (_, message) in zip(found, lines, strict=True):
        assert message in given["error"] if message else "tpot_s" in given


def test_batch_without_lines_answers_nothing(rayhelm: Rayhelm, tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_bytes(b"")
    answer = rayhelm("estimate", "--batch", str(path))
    assert (answer.code, answer.out) == (0, "")


def test_batch_goes_on_after_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([ZeroDivisionError("division by zero"), None])
    whole = query.answer_query

    def answer_once(asked: SpeedQuery) -> SpeedEstimate:
        if error := next(answers):
            raise error
        return whole(asked)

    monkeypatch.setattr(query, "answer_query", answer_once)
    first, second = map(json.loads, answer_lines([json.dumps(MEASURED)] * 2))
    assert first == {"error": "internal error, please report it: ZeroDivisionError: division by zero"}
    assert second["basis"] == "measured"


def test_engine_of_null_is_no_argument() -> None:
    assert ask(engine=None) == ask()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"concurrency": -1}, "concurrency"),
        ({"engine": {"max_num_seqs": float("inf")}}, "max_num_seqs inf is not a number"),
        ({"engine": {"max_num_batched_tokens": -1}}, "max_num_batched_tokens -1 is not a number of at least 1"),
        ({"engine": {"max_model_len": "8k"}}, "max_model_len '8k' is not a number"),
        ({"engine": {"gpu_memory_utilization": 5}}, "gpu_memory_utilization 5 is not a number above 0"),
        ({"engine": {"gpu_memory_utilization": "high"}}, "gpu_memory_utilization 'high' is not a number"),
        ({"engine": {"speculative_config": "{"}}, "speculative_config is not JSON"),
        ({"model": None, "config": "/none/config.json"}, "/none/config.json: cannot be read"),
        ({"input_tokens": 10**12}, "input_tokens"),
        ({"model": None}, "give either `model` or `config`"),
        ({"engine": {"speculative_config": {"num_speculative_tokens": 0}}}, "between 1 and 64"),
        ({"engine": {"speculative_config": {"num_speculative_tokens": 1, "acceptance_rate": 7}}}, "between 0 and 1"),
        ({"network": "internet", "pipeline_parallel_size": 2}, "rate of network internet is unknown"),
        ({"model": "BAAI/bge-m3"}, "generates no tokens"),
        ({"engine": {"max_num_seqs": -5}}, "max_num_seqs -5 is not a number of at least 1"),
    ],
)
def test_wrong_query_is_answered_with_its_error(wrong: dict[str, Any], message: str) -> None:
    (line,) = answer_lines([json.dumps(MEASURED | wrong)])
    assert message in json.loads(line)["error"]


def test_estimate_prints_intervals_and_the_basis(rayhelm: Rayhelm) -> None:
    options = ("--gpu", "L40S", "--concurrency", "8", "--engine", "max_num_seqs=64")
    answer = rayhelm("estimate", "--model", "Qwen/Qwen3-8B", *options)
    assert answer.code == 0
    assert "time per output token" in answer.out
    assert "basis: model" in answer.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "Qwen/Qwen3-8B"], "--gpu is missing"),
        (["--model", "Qwen/Qwen3-8B", "--gpu", "L4-24G"], "L4-24GB"),
        (["--model", "Qwen/Qwen3-8B", "--gpu", "L4-24GB", "--engine", "eager"], "KEY=VALUE"),
        (
            ["--model", "Qwen/Qwen3-8B", "--gpu", "L4-24GB", "--engine", "max_num_seq=8"],
            "vLLM has no argument `max_num_seq`; did you mean `max_num_seqs`",
        ),
        (["--batch", "missing.jsonl"], "missing.jsonl"),
    ],
)
def test_wrong_option_of_estimate_ends_with_2(rayhelm: Rayhelm, options: list[str], message: str) -> None:
    answer = rayhelm("estimate", *options)
    assert answer.code == 2
    assert message in answer.out + answer.err


def test_rows_that_the_fit_uses_have_known_models_and_gpus() -> None:
    rows = load_rows()
    assert len(rows) > 400
    for row in rows:
        load_catalog().model(row.model)
        load_catalog().gpu(row.gpu)
        assert row.source in ("aiconfigurator", "llmservingsim", "dstack")


@pytest.mark.parametrize("tp", [1, 4])
@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize("model", ["Qwen/Qwen3-32B", "Qwen/Qwen3-235B-A22B-FP8", "google/gemma-3-27b-it"])
def test_parts_of_a_step_add_up_to_the_time_per_output_token(model, stages, tp):
    one = replica_of(model, "H100", tp)
    replica = replace(one, gpus=one.gpus * stages, shape=ReplicaShape(tp, stages))
    for concurrency in (1, 7.5, 300):
        speed = compute_speed(replica, Load(3000, 200, concurrency, cached_tokens=500))
        assert sum(speed.parts.values()) == pytest.approx(speed.tpot_s, rel=1e-9)
