"""The example of chart quickstart: the policies of both charts in one namespace."""

from typing import Any

import pytest
import yaml

from charts.kit import only, parsed
from rayhelm.deploy.charts.helm import charts_dir, render

EXAMPLE = charts_dir() / "quickstart/examples/llama-8b.yaml"


@pytest.fixture(scope="module")
def objects() -> dict[str, list[dict[str, Any]]]:
    """What each chart renders, by chart."""
    values = yaml.safe_load(EXAMPLE.read_text())
    return {chart: parsed(render(chart, "llm", "llm", part)) for chart, part in values.items()}


def test_service_admits_the_gateway_of_the_release(objects: dict[str, list[dict[str, Any]]]) -> None:
    labels = only(objects["gateway"], "Deployment")["spec"]["template"]["metadata"]["labels"]
    worker = only(objects["ray-service"], "NetworkPolicy", "llama-8b-worker")["spec"]
    peers = [peer for rule in worker["ingress"] for peer in rule["from"] if "namespaceSelector" not in peer]
    assert any(peer["podSelector"].get("matchLabels", {"": ""}).items() <= labels.items() for peer in peers)


def test_gateway_may_connect_to_the_workers_of_the_release(objects: dict[str, list[dict[str, Any]]]) -> None:
    worker = only(objects["ray-service"], "NetworkPolicy", "llama-8b-worker")["spec"]["podSelector"]
    egress = only(objects["gateway"], "NetworkPolicy")["spec"]["egress"]
    selected = [peer["podSelector"]["matchLabels"] for rule in egress for peer in rule["to"]]
    assert {**worker["matchLabels"], "rayhelm.dev/role": "worker"} in selected
