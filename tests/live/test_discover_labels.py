"""`rayhelm discover` reads the GPU of a node from the labels of feature discovery and of cloud providers."""

from collections.abc import Iterator
from typing import Any

import pytest

from rayhelm.facts import load_catalog
from rayhelm.facts.node_labels import load_node_labels
from rayhelm.live.discovery.machine import Machine, Unusable, read_machine

KNOWN = load_catalog()
TYPE = "node.kubernetes.io/instance-type"


def node(labels: dict[str, str], name: str = "one", annotations: dict[str, str] | None = None, **offered: Any) -> Any:
    """A node; `offered` has `__` for the characters of resources: `nvidia_com__gpu=8`."""
    resources = {key.replace("__", "/").replace("_com", ".com"): str(value) for key, value in offered.items()}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}, "annotations": annotations},
        "status": {"allocatable": {"cpu": "64", "memory": "256Gi", **resources}},
    }


def read(labels: dict[str, str], resource: str = "nvidia.com/gpu", count: int = 8) -> Machine | Unusable | None:
    one = node(labels)
    one["status"]["allocatable"][resource] = str(count)
    return read_machine(one, KNOWN)


def left_out(labels: dict[str, str], resource: str = "nvidia.com/gpu", count: int = 8) -> str:
    found = read(labels, resource, count)
    assert isinstance(found, Unusable), found
    assert found.fix.command
    return found.reason


def found(labels: dict[str, str], resource: str = "nvidia.com/gpu", count: int = 8) -> Machine:
    machine = read(labels, resource, count)
    assert isinstance(machine, Machine), machine
    return machine


def list_rows() -> Iterator[Any]:
    for name, table in load_node_labels().items():
        for value in table.values:
            yield pytest.param(name, value, id=f"{name}-{value}")


@pytest.mark.parametrize(("table", "value"), list_rows())
def test_each_label_of_the_data_means_its_gpu(table: str, value: str) -> None:
    labels, row = load_node_labels()[table], load_node_labels()[table].values[value]
    assert row.source
    assert bool(row.gpus) != bool(row.reason)
    for key in labels.name:
        text = value.replace("*", "x")
        if row.reason:
            assert row.reason in left_out({key: text}, count=1)
        for gpu in row.gpus:
            kind = KNOWN.gpu(gpu)
            product = {"nvidia.com/gpu.product": kind.product_label or ""} if len(row.gpus) > 1 else {}
            assert found({key: text, **product}, kind.resource, 1).gpu.id == gpu


@pytest.mark.parametrize("table", load_node_labels())
def test_data_of_labels_names_gpus_of_the_catalog(table: str) -> None:
    assert load_node_labels()[table].source
    for row in load_node_labels()[table].values.values():
        assert [KNOWN.gpu(gpu).id for gpu in row.gpus] == list(row.gpus)


@pytest.mark.parametrize(
    ("labels", "gpu"),
    [
        ({"karpenter.k8s.aws/instance-gpu-memory": "40960"}, "A100-SXM-40GB"),
        ({"karpenter.k8s.aws/instance-gpu-memory": "81920"}, "A100-SXM-80GB"),
        ({TYPE: "p4d.24xlarge"}, "A100-SXM-40GB"),
        ({TYPE: "p4de.24xlarge"}, "A100-SXM-80GB"),
    ],
)
def test_memory_or_instance_type_decides_between_gpus_of_one_name(labels: dict[str, str], gpu: str) -> None:
    assert found({"karpenter.k8s.aws/instance-gpu-name": "a100", **labels}).gpu.id == gpu


def test_name_of_several_gpus_without_memory_is_left_out() -> None:
    reason = left_out({"karpenter.k8s.aws/instance-gpu-name": "a100"})
    assert "A100-SXM-40GB or A100-SXM-80GB" in reason
    assert "instance-gpu-name=a100" in reason


def test_vm_size_decides_between_gpus_of_one_name_on_aks() -> None:
    labels = {"karpenter.azure.com/sku-gpu-name": "A100", TYPE: "Standard_NC24ads_A100_v4"}
    assert found(labels, count=1).gpu.id == "A100-PCIe-80GB"


@pytest.mark.parametrize(
    "labels",
    [
        {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "cloud.google.com/gke-accelerator": "nvidia-l4"},
        {"cloud.google.com/gke-accelerator": "nvidia-l4", TYPE: "p5.48xlarge"},
    ],
)
def test_contradicting_labels_are_named(labels: dict[str, str]) -> None:
    reason = left_out(labels)
    assert "its labels name different GPUs" in reason
    assert all(f"{key}={value}" in reason for key, value in labels.items())


def test_memory_that_is_not_that_of_the_gpu_is_named() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "9856"}
    assert "nvidia.com/gpu.memory has 9.625 GiB for each GPU, and H100-SXM-80GB" in left_out(labels)


def test_unknown_product_is_not_replaced_by_the_name_of_the_provider() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-XL", "karpenter.k8s.aws/instance-gpu-name": "h100"}
    assert "no GPU `NVIDIA-H100-XL`" in left_out(labels)


def test_unknown_name_of_a_provider_is_named_with_its_label() -> None:
    reason = left_out({"cloud.google.com/gke-accelerator": "nvidia-x9"})
    assert reason == "the catalog has no GPU `nvidia-x9` (label cloud.google.com/gke-accelerator)"


def test_gpus_of_several_vendors_in_one_node_are_left_out() -> None:
    both = read_machine(node({}, nvidia_com__gpu=1, amd_com__gpu=1), KNOWN)
    assert isinstance(both, Unusable)
    assert "several vendors: amd.com/gpu, nvidia.com/gpu" in both.reason


@pytest.mark.parametrize("resource", ["gpu.intel.com/i915", "gpu.intel.com/xe"])
def test_pods_request_the_resource_that_an_intel_node_offers(resource: str) -> None:
    labels = {"gpu.intel.com/device-id.0300-e20b.present": "true", "gpu.intel.com/device-id.0300-e20b.count": "2"}
    machine = found(labels, resource, 2)
    assert (machine.gpu.id, machine.gpus, machine.requests) == ("Arc-B580-12GB", 2, {resource})


def test_resource_of_several_generations_does_not_name_a_gpu() -> None:
    assert left_out({}, "habana.ai/gaudi") == "it offers habana.ai/gaudi and has no label with the name of its GPU"


def test_intel_gpus_without_a_device_id_are_not_guessed() -> None:
    assert "no label with the name" in left_out({"gpu.intel.com/family": "B_Series"}, "gpu.intel.com/i915", 1)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"metadata": {"name": "odd", "labels": {"a": 1}}}, "`metadata.labels.a` cannot be read"),
        ({"metadata": None}, "`metadata` cannot be read"),
        ({"status": {"allocatable": ["gpu"]}}, "`status.allocatable` cannot be read"),
        ({"spec": {"taints": [{"value": "x"}]}}, "`spec.taints.0.key` cannot be read"),
    ],
    ids=["label", "metadata", "allocatable", "taint"],
)
def test_node_of_another_form_is_left_out_with_its_field(change: dict[str, Any], reason: str) -> None:
    odd = read_machine({**node({}, nvidia_com__gpu=1), **change}, KNOWN)
    assert isinstance(odd, Unusable)
    assert reason in odd.reason


@pytest.mark.parametrize("conditions", [None, []])
@pytest.mark.parametrize("taints", [None, []])
def test_node_with_empty_lists_is_read(conditions: Any, taints: Any) -> None:
    one = node({"cloud.google.com/gke-accelerator": "nvidia-l4"}, nvidia_com__gpu=1)
    one["status"]["conditions"], one["spec"] = conditions, {"taints": taints}
    assert isinstance(read_machine(one, KNOWN), Machine)


@pytest.mark.parametrize("missing", [{"status": None}, {"spec": None}, {"status": {}}])
def test_node_without_a_status_offers_nothing(missing: dict[str, Any]) -> None:
    assert read_machine({**node({}), **missing}, KNOWN) is None


@pytest.mark.parametrize(
    ("labels", "capacity"),
    [
        ({"cloud.google.com/gke-accelerator": "nvidia-l4"}, {}),
        ({"nvidia.com/gpu.present": "true"}, {}),
        ({TYPE: "p5.48xlarge"}, {}),
        ({}, {"nvidia.com/gpu": "8"}),
    ],
    ids=["gke", "feature-discovery", "instance-type", "capacity"],
)
def test_node_whose_gpus_are_not_allocatable_is_left_out(labels: dict[str, str], capacity: dict[str, str]) -> None:
    one = node(labels, nvidia_com__gpu=0)
    one["status"]["capacity"] = capacity
    empty = read_machine(one, KNOWN)
    assert isinstance(empty, Unusable)
    assert "it offers no GPU" in empty.reason
    assert "device plugin" in empty.reason


def test_node_without_cpu_or_memory_is_left_out() -> None:
    one = node({"cloud.google.com/gke-accelerator": "nvidia-l4"}, nvidia_com__gpu=1)
    one["status"]["allocatable"]["cpu"] = "0"
    small = read_machine(one, KNOWN)
    assert isinstance(small, Unusable)
    assert "allocatable cpu" in small.reason


def test_node_without_a_name_is_called_so_and_its_fix_lists_all_nodes() -> None:
    odd = read_machine({"metadata": {"labels": {}}}, KNOWN)
    assert isinstance(odd, Unusable)
    assert (odd.name, odd.fix.command) == ("without a name", "kubectl get nodes -o yaml")
