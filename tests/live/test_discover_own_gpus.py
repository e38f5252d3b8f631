"""`rayhelm discover --gpus`: nodes with GPUs that a fleet file describes."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from live.test_discover import MODELS, bare, cluster_with
from rayhelm.errors import FleetError
from rayhelm.fleet.own_gpus import extend_catalog
from rayhelm.live.discovery.cluster import discover
from rayhelm.live.discovery.fleet_text import format_fleet
from shared.command import run
from shared.fleets import load, plan

GPUS = """
gpus:
  LAB-48GB: {like: L40S-48GB, memory: 48GB, productLabel: LAB-GPU}
  RTX-3090-48GB: {like: RTX-3090-24GB, memory: 48GB, productLabel: NVIDIA-GeForce-RTX-3090}
  AMD-LAB: {like: MI300X-192GB, memory: 64GB, productLabel: 75ff}
"""
FLEET = f"fleet: own\n{GPUS}pools: {{gpu: {{gpu: LAB-48GB, nodes: 1}}}}{MODELS}"
PRODUCT, MEMORY = "nvidia.com/gpu.product", "nvidia.com/gpu.memory"
OWN = load(FLEET)


def find_gpus(labels: dict[str, str], resource: str = "nvidia.com/gpu") -> set[str]:
    found = discover(cluster_with([bare("a", labels, resource=resource)]), extend_catalog(OWN.fleet.gpus))
    return {machine.gpu.id for pool in found.pools for machine in pool.machines}


@pytest.mark.parametrize(
    ("labels", "resource", "gpu"),
    [
        ({PRODUCT: "LAB-GPU"}, "nvidia.com/gpu", "LAB-48GB"),
        ({PRODUCT: "NVIDIA-GeForce-RTX-3090", MEMORY: "24576"}, "nvidia.com/gpu", "RTX-3090-24GB"),
        ({PRODUCT: "NVIDIA-GeForce-RTX-3090", MEMORY: "46068"}, "nvidia.com/gpu", "RTX-3090-48GB"),
        ({"amd.com/gpu.device-id": "75ff"}, "amd.com/gpu", "AMD-LAB"),
        ({PRODUCT: "NVIDIA-L4"}, "nvidia.com/gpu", "L4-24GB"),
    ],
)
def test_label_names_the_gpu_of_the_fleet_file(labels: dict[str, str], resource: str, gpu: str) -> None:
    assert find_gpus(labels, resource) == {gpu}


def test_two_gpus_of_one_label_need_the_label_of_the_memory() -> None:
    with pytest.raises(FleetError, match="it can have RTX-3090-24GB or RTX-3090-48GB"):
        find_gpus({PRODUCT: "NVIDIA-GeForce-RTX-3090"})


def test_written_fleet_describes_the_gpus_of_its_pools() -> None:
    found = discover(cluster_with([bare("a", {PRODUCT: "LAB-GPU"})]), extend_catalog(OWN.fleet.gpus))
    described: dict[str, Any] = yaml.safe_load(GPUS)["gpus"]
    text = format_fleet("own", "main", found.settings, found.notes, found.pools, found.unusable, described)
    assert yaml.safe_load(text)["gpus"] == {"LAB-48GB": described["LAB-48GB"]}
    assert plan(text + MODELS).models["chat"].gpu == "LAB-48GB"


def test_unreadable_fleet_is_a_problem_before_the_cluster_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(FLEET.replace("like: L40S-48GB", "like: L40X-48GB"))
    answer = run(capsys, monkeypatch, "discover", "--kubeconfig", "nowhere", "--gpus", str(file))
    assert answer.code == 1
    assert "gpus.LAB-48GB.like" in answer.err
