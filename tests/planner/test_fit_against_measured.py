"""The memory arithmetic against what vLLM logged on real GPUs (data/vllm_memory_measured.csv).

vllm_memory_excluded.csv names the published cases that are not used, with the reason.
"""

import csv
from pathlib import Path

import pytest

from rayhelm.facts import load_catalog
from rayhelm.facts.model import Checkpoint, Quantization
from rayhelm.planner.memory.fit import Fit
from rayhelm.planner.memory.gpu_memory import GIB
from shared.fits import fit

DATA = Path(__file__).parents[1] / "shared/data"
BNB = Quantization(method="bitsandbytes", bits=4, group_size=64, scale_bits=8)

Row = dict[str, str]


def _rows() -> list[Row]:
    with (DATA / "vllm_memory_measured.csv").open() as lines:
        return list(csv.DictReader(lines))


def _having(*columns: str) -> list[object]:
    return [pytest.param(row, id=row["case"]) for row in _rows() if all(row[column] for column in columns)]


def _model(row: Row) -> Checkpoint:
    name, _, method = row["model"].partition("+")
    model = load_catalog().model(name)
    return model.model_copy(update={"quantization": BNB}) if method == "bnb" else model


def _fit(row: Row) -> Fit:
    gpu = load_catalog().gpu(row["gpu"]).model_copy(update={"usable_gib": float(row["usable_gib"])})
    return fit(
        _model(row),
        [gpu],
        int(row["tp"]),
        gpu_memory_utilization=float(row["utilization"]),
        max_model_len=int(row["context"]),
        max_num_seqs=int(row["seqs"]) if row["seqs"] else None,
        moe_backend=row["moe_backend"] or "auto",
        vllm_version=row["version"],
    )


def _token_bytes(row: Row) -> int:
    model = _model(row)
    heads = max(1, model.attention.kv_heads // int(row["tp"]))
    return 2 * model.layers * heads * model.attention.head_dim * 2


def _measured_kv_gib(row: Row) -> float:
    """As logged; where only tokens were, by their bytes, which the next test holds to the logs that have both."""
    return float(row["kv_gib"]) if row["kv_gib"] else int(row["kv_tokens"]) * _token_bytes(row) / GIB


@pytest.mark.parametrize("row", _having("kv_gib", "kv_tokens"))
def test_tokens_follow_from_the_logged_gib(row: Row) -> None:
    assert float(row["kv_gib"]) * GIB / _token_bytes(row) == pytest.approx(int(row["kv_tokens"]), rel=0.012)


@pytest.mark.parametrize("row", _having("weights_gib"))
def test_weights_are_within_one_percent_or_a_fifth_of_a_gib(row: Row) -> None:
    assert _fit(row).weights_gib_per_gpu == pytest.approx(float(row["weights_gib"]), rel=0.01, abs=0.2)


@pytest.mark.parametrize("row", _having("activation_gib"))
def test_activations_are_within_three_percent(row: Row) -> None:
    assert _fit(row).activation_gib == pytest.approx(float(row["activation_gib"]), rel=0.03)


@pytest.mark.parametrize(
    "row", [param for param in _having("activation_gib") if param.values[0]["version"] == "0.11.0"]
)
def test_sampler_and_hidden_states_explain_the_activations_of_each_width(row: Row) -> None:
    """Hidden sizes from 1,024 to 8,192 and three vocabularies, with one constant."""
    assert _fit(row).activation_gib == pytest.approx(float(row["activation_gib"]), abs=0.02)


@pytest.mark.parametrize("row", _having("case"))
def test_cache_is_within_the_error_of_the_case(row: Row) -> None:
    found = _fit(row).kv_available_gib_per_gpu
    assert found == pytest.approx(_measured_kv_gib(row), abs=float(row["kv_gib_within"]))


def test_stated_error_covers_each_measured_cache() -> None:
    outside = []
    for row in _rows():
        answer = _fit(row)
        assert answer.kv_available_gib_per_gpu is not None
        assert answer.error_gib is not None
        if abs(answer.kv_available_gib_per_gpu - _measured_kv_gib(row)) > answer.error_gib:
            outside.append(row["case"])
    assert not outside


@pytest.mark.parametrize("row", [param for param in _having("kv_tokens") if param.id != "22"])
def test_tokens_are_within_two_percent(row: Row) -> None:
    assert _fit(row).kv_cache_tokens == pytest.approx(int(row["kv_tokens"]), rel=0.02)


def test_fit_refuses_what_vllm_refused() -> None:
    refused = [row for row in _rows() if row["kv_gib"].startswith("-")]
    assert [row["case"] for row in refused] == ["4", "vllm-23278"]
    assert not any(_fit(row).fits for row in refused)
    h100 = load_catalog().gpu("H100-SXM-80GB")
    assert not fit(load_catalog().model("deepseek-ai/DeepSeek-R1"), [h100], vllm_version="0.11.0").fits


def test_cache_size_does_not_depend_on_the_context() -> None:
    row = next(row for row in _rows() if row["case"] == "6")
    longer = _fit({**row, "context": "32000"})
    assert longer.kv_available_gib_per_gpu == _fit(row).kv_available_gib_per_gpu


def test_measured_case_is_either_used_or_excluded() -> None:
    with (DATA / "vllm_memory_excluded.csv").open() as lines:
        excluded = {row["case"]: row["reason"] for row in csv.DictReader(lines)}
    assert all(excluded.values())
    assert not excluded.keys() & {row["case"] for row in _rows()}


def test_cache_is_within_five_percent_but_with_an_lmcache_connector() -> None:
    outside = [
        row["case"]
        for row in _rows()
        if _fit(row).kv_available_gib_per_gpu != pytest.approx(_measured_kv_gib(row), rel=0.05)
    ]
    assert outside == ["22"]


def test_kernel_of_marlin_is_counted_where_triton_does_not_run() -> None:
    model, catalog = load_catalog().model("openai/gpt-oss-120b"), load_catalog()
    weights = {
        name: fit(model, [catalog.gpu(name)], vllm_version="0.29.0").weights_gib_per_gpu
        for name in ("H100-SXM-80GB", "A100-SXM-80GB", "B200", "MI300X")
    }
    assert weights["H100-SXM-80GB"] == pytest.approx(64.38, rel=0.002)
    assert weights["A100-SXM-80GB"] == weights["B200"] == pytest.approx(65.97, rel=0.002)
    assert weights["MI300X"] > weights["B200"]


def test_fit_names_the_kernel_that_it_counts() -> None:
    model, h100 = load_catalog().model("openai/gpt-oss-120b"), load_catalog().gpu("H100-SXM-80GB")
    assert any("moe_backend: marlin" in note for note in fit(model, [h100]).notes)
    assert not fit(model, [h100], moe_backend="marlin").notes
    assert not fit(load_catalog().model("Qwen/Qwen3-30B-A3B"), [h100]).notes
