"""The simulation of EngineQueue: its parts, and whether result.json is fresh."""

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
def test_committed_result_is_reproduced(hour: ModuleType, report: ModuleType, trace: str, policy: str) -> None:
    again = hour.run((trace, policy, 1.0, 1.0, 11))
    assert report.list_runs([again])[0] in RESULT["runs"], "run make bench-autoscaling"


def test_committed_summary_matches_the_runs(hour: ModuleType, report: ModuleType) -> None:
    runs = [report.Run(**run) for run in RESULT["runs"]]
    assert report.summarize(runs, hour.SHARES) == RESULT["summary"]


def test_gpu_hours_are_interpolated_between_targets(report: ModuleType) -> None:
    curve = [report.Run("t", "p", factor, 1.0, 1, hours, share, 0) for factor, hours, share in SWEEP]
    assert report.interpolate_gpu_hours(curve, 0.95) == pytest.approx(8.5)
    assert report.interpolate_gpu_hours(curve, 0.85) == pytest.approx(7.0)
    assert report.interpolate_gpu_hours(curve, 0.99) is None


SWEEP = [(0.5, 10.0, 0.98), (0.8, 9.0, 0.96), (1.0, 8.0, 0.94), (1.2, 7.0, 0.85)]
"""Factor on the target, GPU hours, share in time."""
