"""NOTES of the chart platform."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from charts.kit import HELMS, example, over
from rayhelm.deploy.charts.helm import charts_dir


@pytest.fixture
def notes(tmp_path: Path) -> Any:
    def say(overlay: dict[str, Any] | None = None) -> str:
        file = tmp_path / "values.json"
        file.write_text(json.dumps(over(example("platform/minimal"), overlay or {})))
        command = ["install", "platform", charts_dir() / "platform", "--namespace", "rayhelm-system"]
        done = subprocess.run(
            [HELMS["4"], *command, "--dry-run=client", "-f", file], capture_output=True, text=True, check=True
        )
        return done.stdout.partition("NOTES:")[2]

    return say


def test_notes_show_the_order_of_priority_classes(notes: Any) -> None:
    assert "rayhelm-gateway > rayhelm-head > rayhelm-workers > rayhelm-batch" in notes()


def test_notes_name_the_handler_of_a_runtime_class(notes: Any) -> None:
    assert "runtime class" not in notes()
    assert "runtime class nvidia, handler nvidia" in notes({"runtimeClasses": {"nvidia": {"handler": "nvidia"}}})


GPUS = {
    "nvidia": {
        "enabled": True,
        "pools": {
            "cut": {"nodeSelector": {"pool": "a"}, "gpu": "H100-SXM-80GB", "mig": {"3g.40gb": 2}},
            "lab": {"nodeSelector": {"pool": "b", "tier": "2"}, "replicas": 2},
        },
    }
}


def test_notes_have_the_command_that_labels_the_nodes_of_each_pool(notes: Any) -> None:
    said = notes(GPUS)
    assert "kubectl label nodes --overwrite --selector pool=a nvidia.com/mig.config=cut" in said
    assert "kubectl label nodes --overwrite --selector pool=b,tier=2 nvidia.com/device-plugin.config=lab" in said
    assert "kubectl label" not in notes()


def test_notes_have_the_settings_of_the_chart_of_nvidia(notes: Any) -> None:
    assert "--set migManager.config.name=platform-mig" in notes(GPUS)
    assert "--set cdi.enabled=true" in notes(GPUS)
    assert '--reset-then-reuse-values --version "$(helm get metadata gpu-operator --namespace ' in notes(GPUS)
    assert '{name: ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED, value: "false"}' in notes(GPUS)
    assert "deployCR" not in notes(GPUS)
    managed = notes(over(GPUS, {"nvidia": {"clusterPolicy": {"manage": True}}}))
    assert "--set clusterPolicy.deployCR=false" in managed
    assert "migManager.config.name" not in managed


def test_notes_have_the_setting_of_nodes_with_a_toolkit_of_their_own(notes: Any) -> None:
    setting = (
        "accept-nvidia-visible-devices-envvar-when-unprivileged = false in /etc/nvidia-container-runtime/config.toml"
    )
    policy = {"manage": True, "toolkit": False}
    assert setting in notes(over(GPUS, {"nvidia": {"clusterPolicy": policy}}))
    assert setting not in notes(over(GPUS, {"nvidia": {"clusterPolicy": {**policy, "toolkit": True}}}))


def test_notes_warn_that_time_slices_do_not_limit_memory(notes: Any) -> None:
    assert "Their memory is not limited" in notes(GPUS)
    assert "Each gets an equal part" in notes(over(GPUS, {"nvidia": {"pools": {"lab": {"strategy": "mps"}}}}))


def test_notes_have_the_command_that_partitions_amd_gpus(notes: Any) -> None:
    cut = {"mode": "CPX_NPS4", "gpusPerNode": 8, "nodeSelector": {"pool": "d"}}
    said = notes({"amd": {"enabled": True, "partitions": {"eighths": cut}}})
    assert "--selector pool=d dcm.amd.com/gpu-config-profile=eighths" in said


def test_notes_say_to_uninstall_this_release_last(notes: Any) -> None:
    assert "uninstall this release last" in notes()


def test_notes_list_metrics_and_how_to_query_them(notes: Any) -> None:
    assert "Metrics for autoscaling" not in notes()
    said = notes({"metrics": {"services": {"chat": {"namespace": "search"}}}})
    assert "Metrics for autoscaling: rayhelm_kv_cache_usage, rayhelm_queue_length, rayhelm_ttft_seconds\n" in said
    assert "namespaces/search/rayhelm_queue_length?labelSelector=rayhelm_dev_service%3Dchat" in said
    assert "custom.metrics.k8s.io" not in said


def test_notes_have_the_command_for_an_existing_adapter(notes: Any) -> None:
    gateway = {"gateways": {"gateway": {"namespace": "gateway"}}}
    get = "kubectl get configmap platform-metrics --namespace monitoring"
    assert get in notes({"metrics": {**gateway, "adapter": {"namespace": "monitoring"}}})
    assert "configmap" not in notes({"metrics": {**gateway, "adapter": {"kind": "None"}}})


def test_notes_name_the_configmap_of_scrape_configurations(notes: Any) -> None:
    gateway = {"gateways": {"gateway": {"namespace": "gateway"}}}
    assert "ConfigMap platform-scrape" in notes({"metrics": {**gateway, "scraping": {"kind": "ConfigMap"}}})


def test_notes_say_how_many_policies_refuse_objects_and_which_only_warn(notes: Any) -> None:
    assert "21 admission policies refuse objects in all namespaces but kube-system, gpu-operator" in notes()
    said = notes({"policies": {"imageSource": {"action": "Warn", "reason": "a trial"}}})
    assert "20 admission policies" in said
    assert "Only warnings: imageSource." in said
