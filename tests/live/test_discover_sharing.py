"""`rayhelm discover` counts GPUs that are shared or divided, and leaves out what no plan can have."""

import json
from typing import Any

import pytest

from live.test_discover_labels import found, left_out, node
from rayhelm.facts import load_catalog
from rayhelm.live.discovery.machine import Machine, Unusable, read_machine

KNOWN = load_catalog()
PRODUCT = "nvidia.com/gpu.product"
H100 = {PRODUCT: "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8", "nvidia.com/gpu.memory": "81559"}
SINGLE = {
    PRODUCT: "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb",
    "nvidia.com/gpu.count": "56",
    "nvidia.com/gpu.memory": "9856",
    "nvidia.com/gpu.replicas": "1",
    "nvidia.com/gpu.sharing-strategy": "none",
    "nvidia.com/mig.strategy": "single",
}
L4 = {PRODUCT: "NVIDIA-L4", "nvidia.com/gpu.count": "2"}
SLICED = {
    PRODUCT: "NVIDIA-L4-SHARED",
    "nvidia.com/gpu.count": "2",
    "nvidia.com/gpu.replicas": "4",
    "nvidia.com/gpu.sharing-strategy": "time-slicing",
}


def mixed(labels: dict[str, str], **offered: int) -> Machine | Unusable | None:
    one = node(labels)
    names = {key.replace("whole", "nvidia.com/gpu").replace("mig_", "nvidia.com/mig-"): key for key in offered}
    one["status"]["allocatable"] |= {name.replace("_", "."): str(offered[key]) for name, key in names.items()}
    return read_machine(one, KNOWN)


def test_instances_of_mig_strategy_single_are_counted_as_parts_of_gpus() -> None:
    machine = found(SINGLE, count=56)
    assert (machine.gpus, machine.layout, machine.requests) == (8, (("1g.10gb", 7),), {"nvidia.com/gpu"})


def test_gpus_of_mig_strategy_single_are_those_that_the_provider_counts() -> None:
    labels = {
        "cloud.google.com/gke-accelerator": "nvidia-tesla-a100",
        "cloud.google.com/gke-accelerator-count": "2",
        "cloud.google.com/gke-gpu-partition-size": "3g.20gb",
    }
    machine = found(labels, count=4)
    assert (machine.gpu.id, machine.gpus, machine.layout) == ("A100-SXM-40GB", 2, (("3g.20gb", 2),))


@pytest.mark.parametrize(
    ("labels", "count", "reason"),
    [
        (SINGLE, 30, "not all are alike"),
        (SINGLE | {PRODUCT: "NVIDIA-H100-80GB-HBM3-MIG-INVALID"}, 8, "needs equal instances on all of its GPUs"),
        (SINGLE | {PRODUCT: "NVIDIA-H100-80GB-HBM3-MIG-1c.2g.20gb"}, 8, "no MIG profile `1c.2g.20gb`"),
        (SINGLE | {PRODUCT: "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb-SHARED"}, 112, "its MIG instances are shared"),
    ],
    ids=["partly-divided", "invalid", "compute-instances", "shared"],
)
def test_other_instances_of_strategy_single_are_left_out(labels: dict[str, str], count: int, reason: str) -> None:
    assert reason in left_out(labels, count=count)


def test_instances_of_mig_strategy_mixed_are_a_layout() -> None:
    machine = mixed(H100, mig_1g_10gb=16, mig_3g_40gb=8)
    assert isinstance(machine, Machine)
    assert (machine.gpus, dict(machine.layout), machine.resource) == (8, {"1g.10gb": 2, "3g.40gb": 1}, "")


@pytest.mark.parametrize(
    ("labels", "offered", "reason"),
    [
        (H100 | {"nvidia.com/gpu.count": "2"}, {"whole": 1, "mig_1g_10gb": 7}, "some of its GPUs are divided"),
        (H100, {"mig_1g_10gb": 7}, "differ from GPU to GPU"),
        (H100, {"mig_1c_3g_40gb": 8}, "no MIG profile `1c.3g.40gb`"),
        (H100 | {"nvidia.com/gpu.count": "1"}, {"mig_1g_10gb": 14}, "do not fit on 1 H100-SXM-80GB"),
        (H100 | {"nvidia.com/mig-1g.10gb.replicas": "2"}, {"mig_1g_10gb": 112}, "time-sliced"),
    ],
    ids=["beside-a-whole-gpu", "uneven", "compute-instances", "too-many", "sliced"],
)
def test_other_instances_of_strategy_mixed_are_left_out(
    labels: dict[str, str], offered: dict[str, int], reason: str
) -> None:
    divided = mixed(labels, **offered)
    assert isinstance(divided, Unusable)
    assert reason in divided.reason


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "nvidia.com/gpu.shared"])
def test_time_slices_are_counted_as_shares_of_gpus(resource: str) -> None:
    machine = found(SLICED, resource, 8)
    assert (machine.gpu.id, machine.gpus, machine.slices, machine.requests) == ("L4-24GB", 2, 4, {resource})


def test_time_slices_of_gke_are_counted_as_shares_of_gpus() -> None:
    labels = {
        "cloud.google.com/gke-accelerator": "nvidia-l4",
        "cloud.google.com/gke-accelerator-count": "1",
        "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
        "cloud.google.com/gke-max-shared-clients-per-gpu": "3",
    }
    machine = found(labels, count=3)
    assert (machine.gpus, machine.slices, machine.resource) == (1, 3, "nvidia.com/gpu")


@pytest.mark.parametrize(
    ("labels", "count", "reason"),
    [
        (SLICED | {"nvidia.com/gpu.sharing-strategy": "mps"}, 8, "label nvidia.com/gpu.sharing-strategy=mps"),
        (SLICED | {"nvidia.com/gpu.replicas": "1"}, 8, "no label has the number of pods"),
        (SLICED, 7, "no multiple of the 4 pods"),
        (SLICED, 16, "label nvidia.com/gpu.count=2"),
        (SLICED | {"nvidia.com/gpu.replicas": "64"}, 128, "at most 48 time slices"),
        (L4 | {"nvidia.com/vgpu.present": "true"}, 2, "vGPUs"),
        (L4, 20, "label nvidia.com/gpu.count=2: other GPUs beside these, or a device plugin that shares them"),
    ],
    ids=["mps", "no-number", "no-multiple", "too-many", "too-small", "vgpu", "unknown-sharing"],
)
def test_gpus_shared_in_other_ways_are_left_out(labels: dict[str, str], count: int, reason: str) -> None:
    assert reason in left_out(labels, count=count)


def test_gpus_that_are_not_allocatable_are_not_counted() -> None:
    machine = found(H100, count=6)
    assert (machine.gpus, machine.note) == (6, "2 of 8 are not allocatable")


OLD = "GPU-1,10,46068,100,NVIDIA-NVIDIA L40S,0,true:GPU-2,10,46068,100,NVIDIA-NVIDIA L40S,0,true:"
NEW = json.dumps([{"id": "GPU-1", "count": 10}, {"id": "GPU-2", "count": 10}])


@pytest.mark.parametrize("text", [OLD, NEW], ids=["list", "json"])
def test_slots_of_hami_are_counted_by_its_gpus(text: str) -> None:
    labels = {PRODUCT: "NVIDIA-L40S", "nvidia.com/gpu.count": "2"}
    one = node(labels, annotations={"hami.io/node-nvidia-register": text}, nvidia_com__gpu=20)
    machine = read_machine(one, KNOWN)
    assert isinstance(machine, Machine)
    assert (machine.gpus, machine.note) == (2, "HAMi offers 20 units of them")


@pytest.mark.parametrize("text", ["", "[1]", "GPU-1", "{}"])
def test_annotation_of_hami_in_another_form_is_left_out(text: str) -> None:
    labels = {PRODUCT: "NVIDIA-L40S"}
    odd = read_machine(node(labels, annotations={"hami.io/node-nvidia-register": text}, nvidia_com__gpu=20), KNOWN)
    assert isinstance(odd, Unusable)
    assert "hami.io/node-nvidia-register" in odd.reason


MI300X = {"amd.com/gpu.device-id": "74a1", "amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}


@pytest.mark.parametrize(
    ("labels", "resource", "count", "reason"),
    [
        (MI300X | {"amd.com/compute-memory-partition": "cpx_nps4"}, "amd.com/gpu", 64, "cpx_nps4 (label amd.com/comp"),
        (MI300X | {"amd.com/gpu.compute-memory-partition": "dpx_nps1"}, "amd.com/gpu", 16, "dpx_nps1 (label amd.com/g"),
        (MI300X, "amd.com/cpx_nps1", 64, "cpx_nps1 (amd.com/cpx_nps1)"),
        (MI300X | {"amd.com/gpu.vram": "24G"}, "amd.com/gpu", 64, "amd.com/gpu.vram has 24 GiB"),
        (MI300X, "amd.com/gpu", 64, "a host has at most 8 MI300X-192GB"),
    ],
    ids=["label-of-the-operator", "label-of-the-labeller", "resource", "memory", "count"],
)
def test_partitions_of_amd_gpus_are_left_out(labels: dict[str, str], resource: str, count: int, reason: str) -> None:
    assert reason in left_out(labels, resource, count)


@pytest.mark.parametrize(("resource", "renamed"), [("amd.com/gpu", ""), ("amd.com/spx_nps1", "amd.com/spx_nps1")])
def test_undivided_amd_gpus_keep_the_resource_that_is_offered(resource: str, renamed: str) -> None:
    machine = found(MI300X | {"amd.com/compute-memory-partition": "spx_nps1"}, resource)
    assert (machine.gpu.id, machine.gpus, machine.resource) == ("MI300X-192GB", 8, renamed)


def test_shared_intel_gpus_are_counted_by_their_label() -> None:
    labels: dict[str, Any] = {f"gpu.intel.com/device-id.0300-e20b.{key}": text for key, text in (("present", "true"),)}
    machine = found(labels | {"gpu.intel.com/device-id.0300-e20b.count": "2"}, "gpu.intel.com/i915", 6)
    assert (machine.gpus, machine.slices, machine.resource) == (2, 3, "gpu.intel.com/i915")
