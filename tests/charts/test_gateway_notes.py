"""What `helm install` of the chart gateway says at its end."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from charts.kit import HELMS, example, over
from rayhelm.charts.helm import charts_dir


@pytest.fixture
def notes(tmp_path: Path) -> Any:
    def say(overlay: dict[str, Any] | None = None, base: str = "gateway/minimal") -> str:
        file = tmp_path / "values.json"
        file.write_text(json.dumps(over(example(base), overlay or {})))
        command = ["install", "main-gateway", charts_dir() / "gateway", "--namespace", "front", "--dry-run=client"]
        done = subprocess.run([HELMS["4"], *command, "-f", file], capture_output=True, text=True, check=True)
        return done.stdout.partition("NOTES:")[2]

    return say


def test_they_say_where_it_answers(notes: Any) -> None:
    assert "main-gateway: http://main-gateway.front.svc.cluster.local:80/v1, from inside the cluster" in notes()
    assert "llama-8b (chat): /llama-8b/v1" in notes()
    assert "main-gateway: https://ai.example.org/v1\n" in notes(base="gateway/everything")


def test_they_say_how_a_key_is_made_and_where_it_goes(notes: Any) -> None:
    assert "sha256sum" in notes()
    assert "acme: NAME acme-keys, ENTRY keys" in notes()
    assert "acme: NAME acme-keys, ENTRY hashes" in notes(base="gateway/everything")


def test_the_key_that_they_make_is_one_that_the_gateway_knows(notes: Any) -> None:
    """The very command, but for kubectl."""
    (line,) = [line for line in notes().splitlines() if "create secret" in line]
    _, _, literal = line.partition("--from-literal=")
    command = f"key=abc; printf %s {literal}"
    told = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
    assert told == "ENTRY=ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad first"


def test_they_say_which_services_have_to_let_it_in(notes: Any) -> None:
    assert "has to let this gateway in: chat in models" in notes()
    assert "{main-gateway: {namespace: front, podLabels: {rayhelm.dev/gateway: main-gateway}}}" in notes()


def test_they_say_that_nobody_may_call_yet(notes: Any) -> None:
    assert "Nobody may call it yet" in notes()
    assert "Nobody may call it yet" not in notes({"networkPolicy": {"allowedClients": {"apps": {"namespace": "apps"}}}})


def test_they_say_what_becomes_of_limits(notes: Any) -> None:
    assert "each has 1/2 of every tenant's limits; with 6 pods a tenant may get up to 3 times as much" in notes()
    assert "Every pod counts" not in notes({"autoscaling": {"kind": "None"}, "replicas": 1})


def test_they_say_what_is_to_be_filled_in(notes: Any) -> None:
    assert "FILL IN image.digest" in notes()
    assert "FILL IN" not in notes({"image": {"digest": f"sha256:{'0' * 64}"}})


def test_they_warn_of_a_service_that_is_open_to_others(notes: Any) -> None:
    assert "in clear text" not in notes()
    assert "is a LoadBalancer: keys and prompts travel to it in clear text" in notes(
        {
            "service": {"type": "LoadBalancer"},
            "networkPolicy": {"allowedClients": {"office": {"cidrs": ["10.6.0.0/16"]}}},
        }
    )
