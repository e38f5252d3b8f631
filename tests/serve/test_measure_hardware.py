"""The program of `rayhelm probe`, on a CPU: figures of this computer, and of two processes over gloo."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from rayhelm.fleet.measurements import NodeMeasurement, PairMeasurement
from rayhelm.processes.ports import find_free_port
from rayhelm.runtime import measure_hardware

pytestmark = pytest.mark.serve
PATIENCE = 300
"""Seconds; the import of torch takes most of it on a loaded computer."""


def start(what: str, result: Path, environment: Mapping[str, str] = {}) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, measure_hardware.__file__, what],
        env={**os.environ, "OMP_NUM_THREADS": "1", "RESULT_FILE": str(result), **environment},
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], result: Path) -> dict[str, Any]:
    try:
        said, _ = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 0, said
    found: dict[str, Any] = json.loads(result.read_text())
    assert json.loads(said) == found
    return found


def test_node_measures_its_memory_and_matrix_rate(tmp_path: Path) -> None:
    found = finish(start("node", tmp_path / "node.json"), tmp_path / "node.json")
    assert (found["device"], found["gpus"]) == ("cpu", 0)
    found.pop("torch")
    assert NodeMeasurement(node="here", **found).memory_gb_per_s > 0


def test_multiplied_matrices_are_random(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    products: list[Any] = []

    def run_once(_: Any, device: str, work: Callable[[], Any], repeats: int) -> list[float]:
        products.append(work())
        return [1.0] * measure_hardware.ROUNDS

    monkeypatch.setattr(measure_hardware, "_time_rounds", run_once)
    measure_hardware._measure_matrix(torch, "cpu")
    assert float(products[0].std()) > 1


def test_two_processes_measure_the_network_between_them(tmp_path: Path) -> None:
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(find_free_port(set())), "GLOO_SOCKET_IFNAME": "lo"}
    files = [tmp_path / f"{rank}.json" for rank in (0, 1)]
    pair = [start("pair", file, {**shared, "RANK": str(rank)}) for rank, file in enumerate(files)]
    try:
        found = [finish(process, file) for process, file in zip(pair, files, strict=True)]
    finally:
        for process in pair:
            process.kill()
    assert [each.pop("rank") for each in found] == [0, 1]
    for each in found:
        each.pop("torch")
        assert PairMeasurement(nodes=("a", "b"), **each).backend == "gloo"


def test_measurement_that_fails_is_a_result_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RESULT_FILE", str(tmp_path / "pair.json"))
    monkeypatch.setattr(measure_hardware, "measure_pair", lambda: measure_hardware._wait_for_name("absent.invalid", 0))
    assert measure_hardware.main(["pair"]) == 1
    said = capsys.readouterr().out
    assert json.loads(said) == {"error": "TimeoutError: the name absent.invalid does not exist after 0 s"}
    assert (tmp_path / "pair.json").read_text() == said.strip()
