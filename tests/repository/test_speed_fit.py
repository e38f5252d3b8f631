"""The coefficients of the speed model are those that `make fit-performance` writes, and err as much as it says."""

from pathlib import Path

import pytest
import yaml

from rayhelm.planner.speed.coefficients import load_coefficients

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
RESULT = yaml.safe_load((BENCHMARKS / "performance/result.yaml").read_text())


def test_coefficients_are_those_of_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from performance.training import fit_rows, list_usable_rows

    fitted, stored = fit_rows(list_usable_rows()), load_coefficients()
    for computed, written in ((fitted.tpot, stored.tpot), (fitted.ttft, stored.ttft)):
        assert computed.keys() == written.keys()
        for name, value in computed.items():
            assert value == pytest.approx(written[name], rel=0.01), f"{name}: run make fit-performance"


def test_errors_of_the_result_follow_from_the_rows_and_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from performance.validation import FIGURES, leave_out, summarize

    stored = RESULT["errors"]["model_left_out"]["all"]
    residuals = leave_out(lambda row: row.model)
    for figure in FIGURES:
        assert summarize(figure, residuals) == pytest.approx(stored[figure], abs=0.3), "run make fit-performance"


def test_errors_on_models_that_were_left_out_are_within_the_aim() -> None:
    errors = RESULT["errors"]["model_left_out"]["all"]
    assert errors["tpot"]["median"] <= 10
    assert errors["ttft"]["median"] <= 20


def test_intervals_hold_nine_of_ten_rows_that_were_left_out() -> None:
    for figure in RESULT["coverage"].values():
        assert min(found["inside"] for found in figure.values()) >= 90


def test_intervals_hold_for_sources_and_families_that_were_left_out() -> None:
    for found in RESULT["other_sources"].values():
        assert found["all published"]["inside"] >= 88
        assert {title: each["inside"] for title, each in found.items() if each["inside"] < 80} == {}


def test_published_figures_lie_in_the_intervals_that_estimate_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from performance.other_sources import list_published

    found = {name: low <= measured <= high for name, measured, (low, high) in list_published()}
    assert len(found) == 33
    assert sum(found.values()) >= 30, [name for name, is_inside in found.items() if not is_inside]
