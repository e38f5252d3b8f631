"""NOTES.txt of chart gateway."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from charts.kit import HELMS, example, over
from rayhelm.deploy.charts.helm import charts_dir


@pytest.fixture
def notes(tmp_path: Path) -> Any:
    def render_notes(overlay: dict[str, Any] | None = None, base: str = "gateway/minimal") -> str:
        file = tmp_path / "values.json"
        file.write_text(json.dumps(over(example(base), overlay or {})))
        command = ["install", "main-gateway", charts_dir() / "gateway", "--namespace", "front", "--dry-run=client"]
        done = subprocess.run([HELMS["4"], *command, "-f", file], capture_output=True, text=True, check=True)
        return done.stdout.partition("NOTES:")[2]

    return render_notes


def test_notes_name_the_url_of_the_gateway_and_of_each_model(notes: Any) -> None:
    assert "Gateway main-gateway: http://main-gateway.front.svc.cluster.local:80/v1, from inside the cluster" in notes()
    assert "llama-8b (chat): /llama-8b/v1" in notes()
    assert "Gateway main-gateway: https://ai.example.org/v1\n" in notes(base="gateway/everything")


def test_notes_name_the_secret_of_each_tenant(notes: Any) -> None:
    assert "sha256sum" in notes()
    assert "tenant acme: NAME is acme-keys, ENTRY is keys" in notes()
    assert "tenant search: NAME is search-keys, ENTRY is keys" in notes(base="gateway/everything")


def test_notes_create_no_secret_that_a_store_has(notes: Any) -> None:
    text = notes({"externalSecrets": {"acme-keys": {"store": {"name": "vault"}, "keys": {"keys": {"key": "acme"}}}}})
    assert "The store has those of tenant acme: kubectl -n front get externalsecret acme-keys" in text
    assert "create secret" not in text


def test_notes_command_writes_a_line_that_the_gateway_accepts(notes: Any) -> None:
    """Runs the command of the notes without kubectl."""
    (line,) = [line for line in notes().splitlines() if "create secret" in line]
    _, _, literal = line.partition("--from-literal=")
    command = f"key=abc; printf %s {literal}"
    output = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
    assert output == "ENTRY=ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad first"


def test_notes_state_what_is_retried(notes: Any) -> None:
    assert "A failed connection is retried once" in notes()
    assert "or answered 500, is retried the same way" in notes()
    off = notes({"retries": {"emptyResponse": False}})
    assert "received is not retried" in off
    assert "retried the same way" not in off


def test_notes_name_the_services_that_must_allow_the_gateway(notes: Any) -> None:
    assert "must allow this gateway: chat in models" in notes()
    assert "{main-gateway: {namespace: front, podLabels: {rayhelm.dev/gateway: main-gateway}}}" in notes()


def test_notes_warn_when_no_client_is_allowed(notes: Any) -> None:
    assert "networkPolicy.allowedClients is empty" in notes()
    assert "networkPolicy.allowedClients is empty" not in notes(
        {"networkPolicy": {"allowedClients": {"apps": {"namespace": "apps"}}}}
    )


def test_notes_state_the_share_of_each_pod_in_the_limits(notes: Any) -> None:
    assert "has 1/2 of the limits of each tenant. With 6 pods a tenant may get up to 3 times its limits." in notes()
    thirds = {"autoscaling": {"minReplicas": 3, "maxReplicas": 10}}
    assert "With 10 pods a tenant may get up to 3.3 times its limits." in notes(thirds)
    assert "Each pod counts" not in notes({"autoscaling": {"kind": "None"}, "replicas": 1})


def test_notes_ask_for_the_image_digest_when_it_is_empty(notes: Any) -> None:
    assert "Set image.digest" in notes()
    assert "image.digest" not in notes({"image": {"digest": f"sha256:{'0' * 64}"}})


def test_notes_warn_of_clear_text_when_the_service_is_a_load_balancer(notes: Any) -> None:
    assert "in clear text" not in notes()
    assert "has type LoadBalancer: API keys and prompts reach it in clear text" in notes(
        {
            "service": {"type": "LoadBalancer"},
            "networkPolicy": {"allowedClients": {"office": {"cidrs": ["10.6.0.0/16"]}}},
        }
    )
