"""NOTES of the chart tenant."""

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
        file.write_text(json.dumps(over(example("tenant/minimal"), overlay or {})))
        command = ["install", "research", charts_dir() / "tenant", "--namespace", "tenants", "--dry-run=client"]
        done = subprocess.run([HELMS["4"], *command, "-f", file], capture_output=True, text=True, check=True)
        return done.stdout.partition("NOTES:")[2]

    return say


def test_notes_show_each_quota_and_its_parts(notes: Any) -> None:
    assert "nvidia.com/gpu: 4 = 2 baseline + 2 upgrade surge; planned for its services: 2" in notes()
    assert "pods: 128 = 64 baseline + 64 upgrade surge" in notes()


def test_notes_warn_when_a_gpu_resource_has_no_upgrade_surge(notes: Any) -> None:
    assert "nvidia.com/gpu has no upgrade surge" not in notes()
    assert "nvidia.com/gpu has no upgrade surge" in notes({"quota": {"gpus": {"nvidia.com/gpu": {"upgradeSurge": 0}}}})


def test_notes_have_the_labels_when_the_chart_does_not_create_the_namespace(notes: Any) -> None:
    label = "kubectl label namespace research pod-security.kubernetes.io/enforce=restricted"
    assert label in notes({"namespace": {"manage": False, "name": "research"}})
    assert "kubectl label" not in notes()


def test_notes_say_when_access_is_empty(notes: Any) -> None:
    assert "TO DO: access is empty" in notes({"access": {"editors": {"groups": []}}})
    assert "TO DO" not in notes()


def test_notes_say_what_an_uninstall_keeps(notes: Any) -> None:
    assert "keeps the namespace with its services" in notes()
    assert "kubectl delete namespace research" in notes()
    assert "ExternalSecrets" not in notes()
    secret = {"externalSecrets": {"hub": {"store": {"name": "vault"}, "keys": {"token": {"key": "x"}}}}}
    assert "the ExternalSecrets with their Secrets" in notes(secret)


def test_notes_say_what_a_tenant_without_gpus_can_do(notes: Any) -> None:
    assert "no GPUs: the tenant can call models and run services on CPU" in notes(
        {"quota": {"gpus": {"nvidia.com/gpu": None}}}
    )
