"""The container `logs`: it writes Ray's log files to stdout, and nothing of it is there while it is off."""

import json
from pathlib import Path

import pytest

from charts.kit import cluster, env, rendered, worker
from rayhelm.runtime import log_relay

ON = {"logs": {"stdout": {"enabled": True}}}


def pod_specs(overlay=None):
    return [cluster(overlay)["headGroupSpec"]["template"]["spec"], worker(overlay)["template"]["spec"]]


def log_container(spec):
    (found,) = [container for container in spec["initContainers"] if container["name"] == "logs"]
    return found


def vllm_config(overlay=None):
    (found,) = [
        item for item in rendered(overlay) if item["kind"] == "ConfigMap" and item["metadata"]["name"].endswith("-vllm")
    ]
    return found["data"]


def test_pods_have_no_log_container_by_default():
    for spec in pod_specs():
        assert "logs" not in [container["name"] for container in spec.get("initContainers", [])]
        assert "RAY_SERVE_LOG_TO_STDERR" not in env(spec["containers"][0])
    assert "log_relay.py" not in vllm_config()


def test_head_and_workers_have_a_log_container():
    for spec in pod_specs(ON):
        found = log_container(spec)
        assert found["restartPolicy"] == "Always"
        assert found["image"] == spec["containers"][0]["image"]
        assert found["securityContext"] == spec["containers"][0]["securityContext"]
        assert {mount["name"] for mount in found["volumeMounts"]} <= {"tmp", "ray-logs", "vllm-config"}
        assert all(mount["readOnly"] for mount in found["volumeMounts"])


def test_log_container_mounts_the_volume_of_kuberay_where_the_autoscaler_runs():
    scales = {"autoscaler": {"enabled": True}, "workerGroups": {"gpu": {"minReplicas": 1, "maxReplicas": 2}}}
    head, of_worker = pod_specs({**ON, **scales})
    assert ("ray-logs", "/tmp/ray") in [
        (each["name"], each["mountPath"]) for each in log_container(head)["volumeMounts"]
    ]
    assert "ray-logs" in [volume["name"] for volume in head["volumes"]]
    assert "tmp" not in [each["name"] for each in log_container(head)["volumeMounts"]]
    assert "tmp" in [each["name"] for each in log_container(of_worker)["volumeMounts"]]


def test_log_container_reads_the_files_of_the_values():
    patterns = ["serve/*.log", "raylet.out"]
    for spec in pod_specs({"logs": {"stdout": {"enabled": True, "files": patterns}}}):
        found = log_container(spec)
        assert found["command"][-2:] == ["/etc/vllm/log_relay.py", "/tmp/ray/session_latest/logs"]
        assert found["args"] == patterns


def test_log_program_is_the_one_that_is_tested():
    assert vllm_config(ON)["log_relay.py"].strip() == Path(log_relay.__file__).read_text().strip()


def test_log_container_waits_behind_the_weights():
    overlay = {**ON, "weights": {"enabled": True}}
    names = [container["name"] for container in worker(overlay)["template"]["spec"]["initContainers"]]
    assert names == ["wait-for-weights", "logs"]


def test_serve_writes_each_line_once():
    for spec in pod_specs(ON):
        assert env(spec["containers"][0])["RAY_SERVE_LOG_TO_STDERR"] == "0"


@pytest.mark.parametrize("requests", [True, False])
def test_serve_logs_requests_as_the_values_say(requests):
    (service,) = [
        item for item in rendered({"serve": {"logging": {"accessLog": requests}}}) if item["kind"] == "RayService"
    ]
    logging = json.loads(service["spec"]["serveConfigV2"])["logging_config"]
    assert logging == {"encoding": "JSON", "log_level": "INFO", "enable_access_log": requests}
