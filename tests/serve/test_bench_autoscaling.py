"""The simulation behind what the chart's README says of EngineQueue: its parts, and whether result.json is fresh."""

import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
RESULT = json.loads((ROOT / "benchmarks/autoscaling/result.json").read_text())

pytestmark = pytest.mark.serve


@pytest.fixture
def hour(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from autoscaling import hour

    return hour


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from autoscaling import report

    return report


@pytest.mark.parametrize("trace", ["conversation", "code"])
@pytest.mark.parametrize("policy", ["default", "engine-queue"])
def test_the_committed_result_is_what_comes_out(hour: ModuleType, report: ModuleType, trace: str, policy: str) -> None:
    again = hour.run((trace, policy, 1.0, 1.0, 11))
    assert report.as_json([again])[0] in RESULT["runs"], "make bench-autoscaling writes it anew"


def test_the_committed_summary_is_of_the_committed_runs(hour: ModuleType, report: ModuleType) -> None:
    runs = [report.Run(**run) for run in RESULT["runs"]]
    assert report.summary(runs, hour.SHARES) == RESULT["summary"]


def test_an_equal_share_is_read_between_the_targets_of_the_sweep(report: ModuleType) -> None:
    curve = [report.Run("t", "p", factor, 1.0, 1, hours, share, 0) for factor, hours, share in SWEEP]
    assert report.at_equal_share(curve, 0.95) == pytest.approx(8.5)
    assert report.at_equal_share(curve, 0.85) == pytest.approx(7.0)
    assert report.at_equal_share(curve, 0.99) is None


SWEEP = [(0.5, 10.0, 0.98), (0.8, 9.0, 0.96), (1.0, 8.0, 0.94), (1.2, 7.0, 0.85)]
"""Factor on the target, card-hours, share in time."""
