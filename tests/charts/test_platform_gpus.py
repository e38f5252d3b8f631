"""The configuration of the vendors' operators: their CRDs, and the ConfigMaps that their programs read."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from charts import kit
from charts.kit import only, over
from charts.oracles import validator_of
from rayhelm.deploy.values.platform.gpus import NvidiaImages
from rayhelm.errors import MissingError, RayhelmError
from rayhelm.facts import load_catalog
from rayhelm.facts.operators import load_amd, load_intel, load_nvidia
from rayhelm.facts.versions import is_at_least, versions
from testbed.tools.crds import crd_files

Object = dict[str, Any]
EVERYTHING = "platform/everything"


def rendered(overlay: Object | None = None, base: str = EVERYTHING) -> list[Object]:
    return kit.rendered(overlay, chart="platform", base=base, release="platform", namespace="rayhelm-system")


def config(name: str, overlay: Object | None = None) -> dict[str, str]:
    data: dict[str, str] = only(rendered(overlay), "ConfigMap", f"platform-{name}")["data"]
    return data


def complaints(item: Object, file: Path) -> list[str]:
    """What a CRD says against an object; fields that it does not know are among it."""
    return [error.message for error in validator_of(file, item["apiVersion"].partition("/")[2]).iter_errors(item)]


def from_module(bundle: str, name: str) -> Path:
    """A CRD of a pinned Go module."""
    try:
        files = crd_files(bundle)
    except MissingError:
        pytest.skip(f"`make tools` brings the CRDs of {bundle}")
    (file,) = [path for path in files if path.name == name]
    return file


def from_folder(name: str) -> Path:
    """A CRD that no Go module serves."""
    folder = os.environ.get("RAYHELM_CRDS")
    if not folder or not Path(folder, name).is_file():
        pytest.skip(f"RAYHELM_CRDS names no folder with {name}")
    return Path(folder, name)


# -- CRDs --------------------------------------------------------------------------------------------------------------

POLICY = "nvidia.com_clusterpolicies.yaml"
PLUGIN = "deviceplugin.intel.com_gpudeviceplugins.yaml"


def test_cluster_policy_matches_the_crd_of_the_pinned_module() -> None:
    policy = over(only(rendered(), "ClusterPolicy"), {"spec": {"cdi": None}})  # newer than the last CRD in a module
    assert complaints(policy, from_module("gpu-operator", POLICY)) == []


def test_cluster_policy_matches_the_crd_of_the_current_operator() -> None:
    file = from_folder(f"gpu-operator-{load_nvidia().version}/{POLICY}")
    assert complaints(only(rendered(), "ClusterPolicy"), file) == []


def test_crd_refuses_a_wrong_field_of_a_cluster_policy() -> None:
    policy, file = only(rendered(), "ClusterPolicy"), from_module("gpu-operator", POLICY)
    assert complaints(over(policy, {"spec": {"devicePlugin": {"config": {"names": "x"}}}}), file)
    assert complaints(over(policy, {"spec": {"mig": {"strategy": "both"}}}), file)
    assert complaints(over(policy, {"spec": {"driver": None}}), file)


def test_intel_plugins_match_the_crd() -> None:
    plugins = [item for item in rendered() if item["kind"] == "GpuDevicePlugin"]
    assert len(plugins) == 2
    for plugin in plugins:
        assert complaints(plugin, from_module("intel-device-plugins", PLUGIN)) == []
    assert complaints(over(plugins[0], {"spec": {"sharedDevNumber": 2}}), from_module("intel-device-plugins", PLUGIN))


def test_amd_device_config_matches_the_crd() -> None:
    file = from_folder(f"amd-gpu-operator-{load_amd().version}/amd.com_deviceconfigs.yaml")
    device = only(rendered(), "DeviceConfig")
    assert complaints(device, file) == []
    assert complaints(over(device, {"spec": {"devicePlugin": {"arguments": {}}}}), file)


def test_intel_plugin_spreads_pods_only_when_gpus_are_shared() -> None:
    """Its webhook refuses an allocation policy with whole GPUs."""
    plugins = {item["metadata"]["name"]: item["spec"] for item in rendered() if item["kind"] == "GpuDevicePlugin"}
    assert plugins["platform-arc"]["preferredAllocationPolicy"] == "balanced"
    assert "preferredAllocationPolicy" not in plugins["platform-flex"]


# -- MIG manager -------------------------------------------------------------------------------------------------------

PROFILE = re.compile(r"[1-9]g\.[1-9][0-9]*gb")


def mig_configs(overlay: Object | None = None) -> dict[str, list[Object]]:
    """Read as mig-parted reads it (api/spec/v1/spec.go): a version, no unknown field, `all` or a list of
    GPUs, and instances only where MIG is on."""
    spec = yaml.safe_load(config("mig", overlay)["config.yaml"])
    assert spec.keys() == {"version", "mig-configs"}
    assert spec["version"] == "v1"
    for entries in spec["mig-configs"].values():
        assert entries
        for entry in entries:
            assert entry.keys() <= {"devices", "device-filter", "mig-enabled", "mig-devices"}
            assert entry["devices"] == "all"
            assert entry["mig-enabled"] is bool(entry.get("mig-devices"))
            assert all(
                PROFILE.fullmatch(profile) and count > 0 for profile, count in entry.get("mig-devices", {}).items()
            )
    found: dict[str, list[Object]] = spec["mig-configs"]
    return found


def test_each_mig_pool_has_an_entry_and_one_entry_disables_mig() -> None:
    found = mig_configs()
    assert set(found) == {"all-disabled", "isolated"}
    assert found["isolated"][0]["mig-devices"] == {"3g.40gb": 1, "1g.10gb": 2}
    assert found["all-disabled"][0]["mig-enabled"] is False


@pytest.mark.parametrize("gpu", [gpu.id for gpu in load_catalog().gpus() if gpu.mig])
def test_every_largest_layout_of_a_gpu_is_rendered(gpu: str) -> None:
    """The chart and the catalog agree on what fits, for each layout to which nothing can be added."""
    table = load_catalog().mig(load_catalog().gpu(gpu))
    assert table
    pools = {
        f"p{number}": {"nodeSelector": {"pool": "a"}, "gpu": gpu, "mig": layout}
        for number, layout in enumerate(table.largest)
    }
    found = mig_configs({"nvidia": {"pools": pools}})
    assert [found[name][0]["mig-devices"] for name in pools] == list(table.largest)


# -- device plugin -----------------------------------------------------------------------------------------------------

PLUGIN_KEYS = {"version", "flags", "resources", "sharing", "imex"}
"""NVIDIA/k8s-device-plugin api/config/v1/config.go, `Config`."""
REPLICATED = {"renameByDefault", "failRequestsGreaterThanOne", "resources"}
"""replicas.go, `ReplicatedResources`."""
RESOURCE = {"name", "rename", "devices", "replicas"}
"""`ReplicatedResource`: devices are all of them where they are left out."""


def plugin_configs() -> dict[str, Object]:
    found = {name: yaml.safe_load(text) for name, text in config("device-plugin").items()}
    for entry in found.values():
        assert entry.keys() <= PLUGIN_KEYS
        assert entry["version"] == "v1"
        assert entry["flags"] == {"migStrategy": "mixed"}
        for strategy, replicated in entry.get("sharing", {}).items():
            assert strategy in ("timeSlicing", "mps")
            assert replicated.keys() <= REPLICATED
            assert all(resource.keys() <= RESOURCE for resource in replicated["resources"])
    return found


def test_nodes_without_a_label_share_no_gpu() -> None:
    assert "sharing" not in plugin_configs()["default"]


def test_slices_have_their_own_resource_and_a_pod_gets_only_one() -> None:
    sharing = plugin_configs()["sliced"]["sharing"]["timeSlicing"]
    assert (sharing["renameByDefault"], sharing["failRequestsGreaterThanOne"]) == (True, True)
    assert sharing["resources"] == [{"name": "nvidia.com/gpu", "replicas": 4}]


def test_mps_is_a_sharing_strategy_of_the_device_plugin() -> None:
    sharing = plugin_configs()["bounded"]["sharing"]
    assert sharing.keys() == {"mps"}
    assert sharing["mps"]["resources"] == [{"name": "nvidia.com/gpu", "replicas": 3}]


def test_mig_pool_has_no_entry_in_the_device_plugin() -> None:
    assert set(plugin_configs()) == {"default", "sliced", "bounded"}


# -- counters ----------------------------------------------------------------------------------------------------------


def counters(*, profiling: bool) -> list[list[str]]:
    text = config("dcgm", {"nvidia": {"counters": {"profiling": profiling}}})["dcgm-metrics.csv"]
    return [line.split(", ") for line in text.splitlines()]


def test_each_counter_is_a_line_of_three_fields() -> None:
    lines = counters(profiling=True)
    assert len(lines) == len(load_nvidia().counters) + len(load_nvidia().profiling)
    for field, kind, text in lines:
        assert re.fullmatch(r"DCGM_FI_(DEV|PROF|DRIVER)_[A-Z0-9_]+", field)
        assert kind in ("gauge", "counter", "label")
        assert text
        assert "," not in text


def test_dcgm_fields_leave_out_profiling_for_gpus_without_it() -> None:
    assert not [field for field, *_ in counters(profiling=False) if "_PROF_" in field]


# -- what points where -------------------------------------------------------------------------------------------------


def test_cluster_policy_names_the_config_maps_of_its_namespace() -> None:
    spec = only(rendered(), "ClusterPolicy")["spec"]
    made = {
        item["metadata"]["name"]: item["metadata"]["namespace"] for item in rendered() if item["kind"] == "ConfigMap"
    }
    for operand in ("devicePlugin", "migManager", "dcgmExporter"):
        assert made[spec[operand]["config"]["name"]] == "nvidia"
    assert spec["devicePlugin"]["config"]["default"] in config("device-plugin")


def test_every_operand_has_an_image() -> None:
    spec = only(rendered({"nvidia": {"clusterPolicy": {"operands": None}}}), "ClusterPolicy")["spec"]
    for name, operand in load_nvidia().operands.items():
        assert {key: spec[name][key] for key in ("repository", "image", "version")} == operand.model_dump()
    assert set(NvidiaImages().model_dump(by_alias=True)) == set(load_nvidia().operands)


def test_pinned_operator_is_the_one_that_the_cluster_policy_is_written_for() -> None:
    """It needs 25.10 or newer, in which the device plugin uses CDI."""
    assert versions().charts["gpu-operator"].version == f"v{load_nvidia().version}"
    assert is_at_least(load_nvidia().version, "25.10")


@pytest.mark.parametrize("toolkit", [True, False])
def test_toolkit_ignores_visible_devices_only_with_cdi_in_the_device_plugin(toolkit: bool) -> None:
    """Without CDI, and with a strategy of its own, the device plugin itself names GPUs in NVIDIA_VISIBLE_DEVICES."""
    spec = only(rendered({"nvidia": {"clusterPolicy": {"toolkit": toolkit}}}), "ClusterPolicy")["spec"]
    assert spec["toolkit"]["enabled"] is toolkit
    assert spec["toolkit"].get("env", []) == toolkit * [
        {"name": "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED", "value": "false"}
    ]
    assert spec["cdi"] == {"enabled": True}
    assert "env" not in spec["devicePlugin"]


@pytest.mark.parametrize("half", [{"cdi": {"enabled": False}}, {"toolkit": {"env": []}}, {"devicePlugin": {"env": []}}])
def test_no_value_separates_cdi_from_what_the_toolkit_ignores(half: Object) -> None:
    for overlay in ({"nvidia": {"clusterPolicy": half}}, {"nvidia": {"clusterPolicy": {"operands": half}}}):
        with pytest.raises(RayhelmError):
            rendered(overlay)


def test_config_maps_are_rendered_without_a_cluster_policy() -> None:
    found = rendered({"nvidia": {"clusterPolicy": {"manage": False}}})
    assert not [item for item in found if item["kind"] == "ClusterPolicy"]
    assert only(found, "ConfigMap", "platform-mig")


def test_nothing_is_rendered_for_operators_that_are_not_installed() -> None:
    kinds = {item["kind"] for item in rendered(base="platform/minimal")}
    assert not kinds & {"ClusterPolicy", "DeviceConfig", "GpuDevicePlugin"}


def test_amd_profiles_partition_each_gpu_of_a_node() -> None:
    profiles = json.loads(config("amd-partitions")["config.json"])["gpu-config-profiles"]
    assert profiles == {
        "eighths": {"profiles": [{"computePartition": "CPX", "memoryPartition": "NPS4", "numGPUsAssigned": 8}]}
    }
    modes = {f"{cut.compute}_{cut.memory}" for cut in load_amd().partitions.values()}
    assert modes == set(load_amd().partitions)


def test_vendor_resources_equal_those_of_the_catalog() -> None:
    known = {gpu.resource for gpu in load_catalog().gpus()}
    assert {load_amd().resource, load_intel().resources["xe"], load_intel().resources["i915"]} <= known
