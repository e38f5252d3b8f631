"""The planner against vLLM on a GPU: memory of the KV cache, and speed (`benchmarks/engine`)."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RESULT: dict[str, Any] = json.loads((ROOT / "benchmarks/engine/result.json").read_text())


def list_loads() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, measured in RESULT["shapes"].items():
        for load in measured["loads"]:
            yield name, load


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from engine import page

    return page


@pytest.mark.parametrize("name", RESULT["shapes"])
def test_planned_kv_cache_is_that_of_the_engine_within_its_error_and_one_percent(name: str, page: ModuleType) -> None:
    measured = RESULT["shapes"][name]
    planned = page.fit_shape(name, measured, RESULT["gpu"])
    assert abs(planned.kv_available_gib_per_gpu - measured["kv_available_gib"]) < planned.error_gib
    assert planned.kv_cache_tokens == pytest.approx(measured["kv_cache_tokens"], rel=0.01)
    assert planned.weights_gib_per_gpu == pytest.approx(measured["weights_gib"], rel=0.002)


@pytest.mark.parametrize(("name", "load"), list_loads(), ids=lambda each: each if isinstance(each, str) else None)
def test_measured_throughput_is_inside_the_estimated_interval(
    name: str, load: dict[str, Any], page: ModuleType
) -> None:
    rate = page.estimate_load(name, RESULT["shapes"][name], load, RESULT["gpu"]).output_tokens_per_second
    assert rate.low <= load["output_tokens_per_second"] <= rate.high


@pytest.mark.parametrize("name", RESULT["shapes"])
def test_measured_tpot_of_one_request_is_inside_the_estimated_interval(name: str, page: ModuleType) -> None:
    measured = RESULT["shapes"][name]
    load = next(load for load in measured["loads"] if load["concurrency"] == 1)
    tpot = page.estimate_load(name, measured, load, RESULT["gpu"]).tpot_s
    assert tpot.low <= load["tpot_s"] <= tpot.high


def test_page_has_the_tables_of_the_result(page: ModuleType) -> None:
    text = page.PAGE.read_text()
    assert page.build_tables(RESULT) in text
    assert page.replace_tables(text, RESULT) == text


@pytest.mark.parametrize("name", RESULT["shapes"])
def test_measured_shape_is_that_of_the_catalog(name: str, page: ModuleType) -> None:
    """The config.json that vLLM read, and the model whose memory and speed are compared."""
    from rayhelm.facts.huggingface import read_config

    shape, model = read_config(ROOT / f"benchmarks/engine/shapes/{name}.json"), read_config(page.SHAPES[name])
    assert (shape.layers, shape.hidden, shape.attention, shape.experts) == (
        model.layers, model.hidden, model.attention, model.experts,
    )  # fmt: skip
