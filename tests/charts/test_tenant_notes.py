"""What `helm install` of the chart tenant says at its end."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from charts.kit import HELMS, example, over
from rayhelm.charts.helm import charts_dir


@pytest.fixture
def notes(tmp_path: Path) -> Any:
    def say(overlay: dict[str, Any] | None = None) -> str:
        file = tmp_path / "values.json"
        file.write_text(json.dumps(over(example("tenant/minimal"), overlay or {})))
        command = ["install", "research", charts_dir() / "tenant", "--namespace", "tenants", "--dry-run=client"]
        done = subprocess.run([HELMS["4"], *command, "-f", file], capture_output=True, text=True, check=True)
        return done.stdout.partition("NOTES:")[2]

    return say


def test_they_show_the_sum_and_its_parts(notes: Any) -> None:
    assert "nvidia.com/gpu: 4 = 2 + 2 while services are upgraded; the plan gives its services 2" in notes()
    assert "pods: 128 = 64 + 64" in notes()


def test_they_say_where_no_upgrade_comes_to_its_end(notes: Any) -> None:
    assert "nothing is kept for upgrades" not in notes()
    assert "nothing is kept for upgrades" in notes({"quota": {"gpus": {"nvidia.com/gpu": {"upgradeSurge": 0}}}})


def test_they_have_the_labels_of_a_namespace_that_somebody_else_makes(notes: Any) -> None:
    label = "kubectl label namespace research pod-security.kubernetes.io/enforce=restricted"
    assert label in notes({"namespace": {"manage": False, "name": "research"}})
    assert "kubectl label" not in notes()


def test_they_say_that_nobody_may_do_anything_yet(notes: Any) -> None:
    assert "FILL IN access" in notes({"access": {"editors": {"groups": []}}})
    assert "FILL IN" not in notes()


def test_they_say_what_an_uninstall_leaves(notes: Any) -> None:
    assert "leaves the namespace with its services" in notes()
    assert "kubectl delete namespace research" in notes()
    assert "ExternalSecrets" not in notes()
    secret = {"externalSecrets": {"hub": {"store": {"name": "vault"}, "keys": {"token": {"key": "x"}}}}}
    assert "the ExternalSecrets with their Secrets" in notes(secret)


def test_they_say_what_a_tenant_without_cards_may_do(notes: Any) -> None:
    assert "no cards: it may call models, and serve on CPU" in notes({"quota": {"gpus": {"nvidia.com/gpu": None}}})
