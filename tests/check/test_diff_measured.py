"""`rayhelm diff` names measurements as the cause of a change."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from check.test_diff_sources import git
from shared.command import Answer, run

Rayhelm = Callable[..., Answer]
FLEET = """\
measurements: measured.yaml
fleet: measured
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}, gpuFeatureDiscovery: true}}
pools:
  cheap: {gpu: A100-SXM-80GB, nodes: 2, gpusPerNode: 4, network: rdma-400g, rdmaResource: rdma/hca, price: 1.00 USD/h}
  dense: {gpu: H100-SXM-80GB, nodes: 1, gpusPerNode: 8, price: 4.00 USD/h}
models:
  large:
    source: meta-llama/Llama-3.1-405B-Instruct-FP8
    unpinnedReason: a test of measurements
    context: 8192
    traffic: {requestsPerSecond: 0.05, inputTokens: 4000, outputTokens: 100}
    slo: {ttft: 16s}
"""
MEASURED = """\
pools:
  cheap:
    gpu: A100-SXM-80GB
    measured_at: 2026-11-01T12:00:00Z
    pairs:
      - {nodes: [a, b], backend: nccl, gb_per_s: RATE, latency_us: 60, spread: 0.05}
"""


@pytest.fixture
def rayhelm(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Rayhelm:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: run(capsys, monkeypatch, *arguments)


def write(folder: str, rate: str, fleet: str = FLEET) -> str:
    Path(folder).mkdir(exist_ok=True)
    (Path(folder) / "fleet.yaml").write_text(fleet)
    (Path(folder) / "measured.yaml").write_text(MEASURED.replace("RATE", rate))
    return f"{folder}/fleet.yaml"


def notes(answer: Answer) -> list[str]:
    found: list[str] = json.loads(answer.out)["notes"]
    return [note for note in found if "measure" in note]


def test_diff_explains_a_plan_change_by_its_measurement(rayhelm: Rayhelm) -> None:
    old, new = write("old", "45"), write("new", "0.05")
    (note,) = notes(rayhelm("diff", old, new, "--format", "json"))
    assert "pool `cheap`: rdma-400g (45 GB/s, 60 us, RDMA, measured) is now rdma-400g (0.05 GB/s" in note
    assert "model `large`: 1 x TP 4 x PP 2 on pool `cheap`, 8 GPUs becomes 1 x TP 8 x PP 1 on pool `dense`" in note


def test_diff_says_when_a_measurement_changes_no_model(rayhelm: Rayhelm) -> None:
    (note,) = notes(rayhelm("diff", write("old", "45"), write("new", "40"), "--format", "json"))
    assert note.endswith("No model is placed, split or scaled otherwise because of them")


def test_diff_does_not_blame_measurements_that_did_not_change(rayhelm: Rayhelm) -> None:
    old, new = write("old", "45"), write("new", "45", FLEET.replace("8192", "6000"))
    assert notes(rayhelm("diff", old, new, "--format", "json")) == []


def test_git_range_reads_the_measurements_of_each_revision(rayhelm: Rayhelm) -> None:
    git("init", "--quiet", "--initial-branch=main")
    for rate in ("45", "0.05"):
        write("here", rate)
        git("add", ".")
        git("commit", "--quiet", "--message", rate)
    (note,) = notes(rayhelm("diff", "HEAD~1..HEAD", "here/fleet.yaml", "--format", "json"))
    assert "becomes 1 x TP 8 x PP 1 on pool `dense`" in note


def test_revision_without_the_measurements_is_refused(rayhelm: Rayhelm) -> None:
    git("init", "--quiet", "--initial-branch=main")
    write("here", "45")
    git("add", "here/fleet.yaml")
    git("commit", "--quiet", "--message", "only the fleet")
    answer = rayhelm("diff", "HEAD", "here/fleet.yaml")
    assert answer.code == 1
    assert "here/measured.yaml: the file does not exist in revision `HEAD`" in answer.err
