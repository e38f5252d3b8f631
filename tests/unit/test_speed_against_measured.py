"""The estimate of speed against measured vLLM rows: it errs as much as the plan says, and no more."""

import csv
import statistics
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from rayhelm.catalog import load_catalog
from rayhelm.catalog.engines import find_engine
from rayhelm.planner.memory.kv_cache import lay_out_kv_cache
from rayhelm.planner.memory.parallelism import find_partition
from rayhelm.planner.placement.performance import (
    estimate_decode_step_s,
    estimate_first_token_s,
    estimate_prefill_s,
    load_roofline,
)

ROWS = Path(__file__).parent / "data" / "vllm_speed_measured.csv"


class Errors(NamedTuple):
    ttft: float
    tpot: float


@cache
def errors() -> dict[tuple[str, str], list[Errors]]:
    """Relative errors by model and GPU."""
    found: dict[tuple[str, str], list[Errors]] = {}
    with ROWS.open() as file:
        next(file)
        for row in csv.DictReader(file):
            found.setdefault((row["model"], row["gpu"]), []).append(_errors(row))
    return found


def _errors(row: dict[str, str]) -> Errors:
    model, gpus, tp = load_catalog().model(row["model"]), (load_catalog().gpu(row["gpu"]),), int(row["tp"])
    prompt, answer, concurrency = int(row["input_tokens"]), int(row["output_tokens"]), float(row["concurrency"])
    cache = lay_out_kv_cache(model, tp, find_partition(model, 1), "auto", find_engine("0.29.0")[0])
    assert cache
    step = estimate_decode_step_s(
        model, gpus, tp, concurrency, prompt + answer / 2, cache.token_bytes(0), prompt / answer
    )
    alone = estimate_prefill_s(model, gpus, tp, prompt, None)
    assert step
    assert alone
    first = estimate_first_token_s(alone, step, concurrency)
    return Errors(abs(first * 1e3 / float(row["ttft_ms"]) - 1), abs(step * 1e3 / float(row["tpot_ms"]) - 1))


def everything() -> list[Errors]:
    return [error for rows in errors().values() for error in rows]


def test_error_of_time_per_token_is_as_stated() -> None:
    assert statistics.median(error.tpot for error in everything()) == pytest.approx(0.11, abs=0.01)
    assert statistics.mean(error.tpot for error in everything()) == pytest.approx(0.23, abs=0.01)
    assert "median 11 %, mean 23 % over 355" in load_roofline().tpot_error


def test_error_of_time_to_first_token_is_as_stated() -> None:
    assert statistics.mean(error.ttft for error in everything()) == pytest.approx(0.28, abs=0.01)
    assert "mean 28 % over 355" in load_roofline().ttft_error


def test_error_of_dense_models_is_below_a_fifth() -> None:
    for (model, gpu), rows in errors().items():
        if "gpt-oss" not in model:
            assert statistics.mean(error.tpot for error in rows) < 0.2, (model, gpu)
