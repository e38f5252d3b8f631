"""The comparison with AIConfigurator: its result, and what is asked for each measured row."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULT = json.loads((ROOT / "benchmarks/estimates/result.json").read_text())


def test_result_is_of_the_version_in_the_lock() -> None:
    lock = (ROOT / "requirements/estimates.txt").read_text()
    pinned = re.search(r"^aiconfigurator==(\S+)", lock, re.MULTILINE)
    assert pinned
    assert pinned[1] == RESULT["conditions"]["aiconfigurator"]


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


def test_each_row_of_a_known_gpu_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from estimates.questions import SYSTEMS, build_question
    from performance.training import list_usable_rows

    for row in list_usable_rows():
        question = build_question(row, None, "SILICON")
        assert (question is not None) == (row.gpu in SYSTEMS)
        if question:
            assert question["batch_size"] * row.dp == pytest.approx(row.load.concurrency, rel=0.01)
            assert question["moe_tp_size"] * question["moe_ep_size"] == row.tp * row.dp
