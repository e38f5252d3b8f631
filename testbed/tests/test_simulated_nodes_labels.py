"""The labels that vendors' discovery writes, and the command that applies nodes."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from rayhelm.facts import load_catalog
from shared.fleets import load
from testbed.nodes import simulated
from testbed.nodes.__main__ import main
from testbed.nodes.kwok import STAGES, kwok_arguments, kwok_environment
from testbed.nodes.labels import FOLDER, Labeler, facts_of, labels_of
from testbed.nodes.manifest import KUBELET

VALUES = Path(__file__).parents[2] / "values"
VENDORS = ("nvidia", "amd", "intel")


def read(vendor: str) -> Labeler:
    return Labeler.model_validate(yaml.safe_load((FOLDER / f"{vendor}.yaml").read_text()))


# -- labels ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vendor", VENDORS)
def test_gpus_of_labeler_file_are_in_the_catalog_with_a_source(vendor: str) -> None:
    for name, facts in read(vendor).gpus.items():
        gpu_kind = load_catalog().gpu(name)
        assert (gpu_kind.id, gpu_kind.vendor) == (name, vendor)
        assert facts["source"].startswith(("seen: ", "derived: ")), name


@pytest.mark.parametrize("vendor", VENDORS)
def test_file_does_not_repeat_facts_of_the_catalog(vendor: str) -> None:
    for name, facts in read(vendor).gpus.items():
        assert not ("product" in facts and load_catalog().gpu(name).product_label), name


def test_every_compute_capability_of_the_catalog_has_a_family() -> None:
    used = {gpu_kind.compute for gpu_kind in load_catalog().gpus() if gpu_kind.vendor == "nvidia"}
    assert used == read("nvidia").by_compute.keys()


def test_label_with_an_unknown_fact_is_omitted() -> None:
    assert "nvidia.com/gpu.memory" in labels_of(load_catalog().gpu("RTX-4090-24GB"), 1)
    assert "nvidia.com/gpu.memory" not in labels_of(load_catalog().gpu("DGX-Spark-128GB"), 1)


def test_arc_gpu_has_no_product_label() -> None:
    labels = labels_of(load_catalog().gpu("Arc-A770-16GB"), 2)
    assert labels == {
        "intel.feature.node.kubernetes.io/gpu": "true",
        "gpu.intel.com/device-id.0300-56a0.present": "true",
        "gpu.intel.com/device-id.0300-56a0.count": "2",
        "gpu.intel.com/family": "A_Series",
    }


def test_gaudi_is_no_gpu_and_has_no_labels_of_one() -> None:
    assert labels_of(load_catalog().gpu("Gaudi-3-128GB"), 8) == {}


def test_amd_product_is_spelled_with_underscores() -> None:
    labels = labels_of(load_catalog().gpu("MI300X-192GB"), 8)
    assert labels["amd.com/gpu.product-name"] == "AMD_Instinct_MI300X_OAM"
    assert (labels["amd.com/gpu.vram"], labels["amd.com/gpu.cu-count"]) == ("192G", "304")


def test_product_label_of_catalog_overrides_labeler_file() -> None:
    gpu_kind = load_catalog().gpu("MI300X-192GB").model_copy(update={"product_label": "AMD_Instinct_MI300X_VF"})
    assert facts_of(gpu_kind, 1)["product"] == "AMD_Instinct_MI300X_VF"


# -- KWOK --------------------------------------------------------------------------------------------------------------


def stages() -> list[dict[str, Any]]:
    return [stage for file in STAGES.glob("*.yaml") for stage in yaml.safe_load_all(file.read_text())]


def test_kwok_reads_every_stage_and_nothing_of_the_user_s() -> None:
    arguments = kwok_arguments(Path("kubeconfig"), 1234)
    assert [name for name in arguments if name.startswith("--config=")] == [
        f"--config={file}" for file in sorted(STAGES.glob("*.yaml"))
    ]
    assert "--server-address=127.0.0.1:1234" in arguments
    assert kwok_environment(Path("state")) == {"KWOK_WORKDIR": "state"}


def test_kwok_touches_no_node_without_the_label_of_simulated_ones() -> None:
    assert f"--manage-nodes-with-label-selector={KUBELET}=alive" in kwok_arguments(Path("kubeconfig"), 1)
    assert not [name for name in kwok_arguments(Path("kubeconfig"), 1) if "all-nodes" in name]


def test_stages_have_names_of_their_own_and_one_form() -> None:
    names = [stage["metadata"]["name"] for stage in stages()]
    assert len(names) == len(set(names))
    assert {(stage["apiVersion"], stage["kind"]) for stage in stages()} == {("kwok.x-k8s.io/v1alpha1", "Stage")}


def test_node_heartbeats_are_twice_as_frequent_as_the_grace_period() -> None:
    (heartbeat,) = [stage for stage in stages() if stage["metadata"]["name"] == "node-heartbeat"]
    assert heartbeat["spec"]["delay"]["jitterDurationMilliseconds"] * 2 <= 50_000


def test_documented_pod_health_values_are_those_of_the_stages() -> None:
    reported = {
        line.split("`")[1] for line in (STAGES / "README.md").read_text().splitlines() if line.startswith("| `")
    }
    known = {
        value
        for stage in stages()
        for found in stage["spec"]["selector"].get("matchExpressions", [])
        if "testbed.rayhelm.dev/pod" in found["key"]
        for value in found.get("values", [])
    }
    assert known
    assert {name for name in reported if not name.endswith(".yaml")} == known


# -- command -----------------------------------------------------------------------------------------------------------


def test_manifests_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(VALUES / "single-gpu" / "fleet.yaml"), "-o", "yaml", "--cpu-nodes", "1"]) == 0
    printed = list(yaml.safe_load_all(capsys.readouterr().out))
    assert [item["metadata"]["name"] for item in printed if item["kind"] == "Node"] == ["gpu-0", "without-gpus-0"]
    assert {item["kind"] for item in printed} == {"Node", "PersistentVolume"}


def test_thousand_gpus_need_no_fleet(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--gpus", "1000", "--cpu-nodes", "0", "-o", "yaml"]) == 0
    assert capsys.readouterr().out.count("nvidia.com/gpu.present") == 125


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "a fleet file or a number of GPUs is required"),
        ([str(VALUES / "single-gpu" / "fleet.yaml"), "--gpus", "8"], 2, "a fleet file or a number of GPUs is required"),
        (["--gpus", "12"], 2, "--gpus 12: must be a multiple of 8"),
        (["--gpus", "0"], 2, "--gpus 0"),
        (["--gpus", "8", "--cpu-nodes", "-1"], 2, "--cpu-nodes -1"),
        ([str(VALUES / "three-tiers" / "fleet.yaml")], 2, "several clusters"),
        ([str(VALUES / "three-tiers" / "fleet.yaml"), "--cluster", "moon"], 2, "no cluster `moon`"),
        (["nowhere.yaml"], 1, "nowhere.yaml"),
        (["--gpus", "8", "--kubeconfig", "nowhere"], 2, "there is no nowhere"),
        (["--gpus", "8"], 2, "no kubeconfig is set"),
    ],
)
def test_wrong_arguments_are_reported_clearly(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert main(arguments) == code
    assert said in capsys.readouterr().err


SHARED = load(
    "fleet: f\npools:\n"
    "  cut: {gpu: H100-SXM-80GB, nodes: 1, gpusPerNode: 2, sharing: {layout: {3g.40gb: 1, 1g.10gb: 2}}}\n"
    "  lab: {gpu: L4-24GB, nodes: 1, gpusPerNode: 2, sharing: {shares: 3}}\nmodels: {chat: {source: Qwen/Qwen3-0.6B}}"
)


def test_host_with_mig_has_labels_for_each_profile() -> None:
    cut, _ = simulated(SHARED)
    labels = cut["metadata"]["labels"]
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert labels["nvidia.com/mig-3g.40gb.product"] == "NVIDIA-H100-80GB-HBM3-MIG-3g.40gb"
    assert (labels["nvidia.com/mig-3g.40gb.count"], labels["nvidia.com/mig-1g.10gb.count"]) == ("2", "4")
    assert (labels["nvidia.com/mig.strategy"], labels["nvidia.com/mig.config"]) == ("mixed", "cut")
    assert labels["nvidia.com/gpu.replicas"] == "0"


def test_host_with_time_slices_has_their_labels_and_product_name() -> None:
    _, lab = simulated(SHARED)
    labels = lab["metadata"]["labels"]
    assert (labels["nvidia.com/gpu.replicas"], labels["nvidia.com/gpu.sharing-strategy"]) == ("3", "time-slicing")
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-L4"
    assert labels["nvidia.com/device-plugin.config"] == "lab"


def test_hosts_offer_parts_in_place_of_whole_gpus() -> None:
    cut, lab = (node["status"]["allocatable"] for node in simulated(SHARED))
    assert (cut["nvidia.com/mig-3g.40gb"], cut["nvidia.com/mig-1g.10gb"]) == ("2", "4")
    assert lab["nvidia.com/gpu.shared"] == "6"
    assert "nvidia.com/gpu" not in cut.keys() | lab.keys()
