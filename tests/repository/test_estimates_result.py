"""The comparison with AIConfigurator: its result, and what is asked for each measured row."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
RESULT = json.loads((ROOT / "benchmarks/estimates/result.json").read_text())
FIT = yaml.safe_load((ROOT / "benchmarks/performance/result.yaml").read_text())["errors"]["model_left_out"]
STALE = "run make bench-estimates"


@pytest.fixture(autouse=True)
def _path_of_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def test_result_is_of_the_version_in_the_lock() -> None:
    lock = (ROOT / "requirements/estimates.txt").read_text()
    pinned = re.search(r"^aiconfigurator==(\S+)", lock, re.MULTILINE)
    assert pinned
    assert pinned[1] == RESULT["conditions"]["aiconfigurator"], STALE


def test_result_is_of_the_measured_rows_and_questions_of_the_repository() -> None:
    from estimates.inputs import compute_digest
    from performance.training import list_usable_rows

    assert compute_digest(list_usable_rows()) == RESULT["inputs"]["sha256"], STALE


def test_digest_depends_on_each_measured_figure_and_question() -> None:
    from estimates.inputs import compute_digest
    from performance.training import list_usable_rows

    first, *others = list_usable_rows()
    longer = replace(first.load, output_tokens=first.load.output_tokens + 1)
    wider = replace(first.shape, tp=2 * first.shape.tp)
    changes = ({"tpot_s": first.tpot_s * 1.001}, {"ttft_s": 9.0}, {"shape": wider}, {"load": longer})
    digests = {compute_digest([replace(first, **change), *others]) for change in ({}, *changes)}
    assert len(digests) == 1 + len(changes)


@pytest.mark.parametrize("rows", ["all", "dense", "sparse"])
@pytest.mark.parametrize("figure", ["tpot", "ttft"])
def test_result_is_of_the_present_fit(rows: str, figure: str) -> None:
    """A test of the fit compares `FIT` with the code and the rows."""
    assert RESULT["inputs"]["rayhelm_over_all_rows"][rows][figure] == FIT[rows][figure], STALE


def test_page_has_the_figures_of_the_result() -> None:
    from estimates.page import PAGE, replace_text

    page = PAGE.read_text()
    assert "<!-- AIConfigurator -->" in page
    assert replace_text(page, RESULT) == page, STALE


@pytest.mark.parametrize("kv_cache", ["bf16", "fp8"])
@pytest.mark.parametrize("figure", ["tpot", "ttft"])
@pytest.mark.parametrize("error", ["median", "mean"])
def test_estimates_err_less_than_those_of_aiconfigurator(kv_cache: str, figure: str, error: str) -> None:
    found = RESULT["by_kv_cache"][kv_cache]["errors"]["all"][figure]
    assert found["rows"] > 400
    assert found["rayhelm"][error] < found["aiconfigurator"][error]


def test_each_row_is_answered_or_counted_as_refused() -> None:
    for found in RESULT["by_kv_cache"].values():
        assert sum(found["answered"].values()) + sum(found["not_answered"].values()) == RESULT["rows"]


def test_each_row_of_a_known_gpu_is_asked() -> None:
    from estimates.questions import SYSTEMS, build_question
    from performance.training import list_usable_rows

    for row in list_usable_rows():
        question = build_question(row, None, "SILICON")
        assert (question is not None) == (row.gpu in SYSTEMS)
        if question:
            assert question["batch_size"] * row.shape.dp == pytest.approx(row.load.concurrency, rel=0.01)
            assert question["moe_tp_size"] * question["moe_ep_size"] == row.shape.gpu_count
