"""Pods of chart platform: the doctor, a managed metrics adapter, and the probe."""

from collections.abc import Mapping
from typing import Any

import pytest

from network.kit.analyzer import Block
from network.kit.compare import find_allowed, find_differences
from network.kit.releases import render_one
from network.kit.world import Pod, World, world_of

Values = Mapping[str, Any]
NETWORK = {"apiServer": {"cidrs": ["10.0.0.1/32"]}}
DOCTOR: Values = {"doctor": {"enabled": True, "image": {"repository": "registry.example/rayhelm", "tag": "1"}}}
ADAPTER: Values = {
    "metrics": {
        "gateways": {"gateway": {"namespace": "gateway"}},
        "prometheusUrl": "http://prometheus.monitoring:9090",
        "adapter": {"kind": "Managed", "namespace": "metrics", "tls": {"skipVerifyReason": "a test"}},
    }
}
PROBE: Values = {
    "probe": {
        "enabled": True,
        "image": {"repository": "registry.example/rayhelm", "tag": "1"},
        "images": ["registry.example/ray:1"],
        "fleet": "fleet: mine",
    }
}
PARTS = {"doctor": DOCTOR, "adapter": ADAPTER, "probe": PROBE, "all": DOCTOR | ADAPTER | PROBE}


def world(values: Values, **network: Any) -> World:
    overlay = {**values, "networkPolicy": {**NETWORK, **network}}
    return world_of([render_one("platform", overlay, name="platform", namespace="rayhelm-system")])


def place(end: Pod | Block) -> str:
    return str(end) if isinstance(end, Block) else end.namespace


def find_clients(world: World, role: str) -> set[tuple[str, str]]:
    """Find namespaces and addresses that may connect to the pods of a role, with the port."""
    found = [each for each in find_allowed(world) if isinstance(each.target, Pod) and each.target.role == role]
    return {(place(each.source), each.port) for each in found}


@pytest.mark.parametrize("part", PARTS)
def test_policies_of_the_platform_allow_the_listed_flows_only(part: str) -> None:
    assert find_differences(world(PARTS[part])) == []


def test_only_prometheus_reads_findings() -> None:
    assert find_clients(world(DOCTOR), "doctor") == {("monitoring", "TCP 9111")}
    assert find_clients(world(DOCTOR, prometheus={"namespace": ""}), "doctor") == set()


def test_only_the_api_server_reads_metrics_of_the_adapter() -> None:
    assert find_clients(world(ADAPTER), "adapter") == {("10.0.0.1-10.0.0.1", "TCP 6443")}
    agent = {"konnectivity": {"namespace": "kube-system", "podLabels": {"k8s-app": "konnectivity-agent"}}}
    found = find_clients(world(ADAPTER, apiServerClients=agent), "adapter")
    assert ("kube-system", "TCP 6443") in found
    assert find_differences(world(ADAPTER, apiServerClients=agent)) == []


def test_doctor_reaches_the_api_server_prometheus_and_dns_only() -> None:
    found = [
        each for each in find_allowed(world(DOCTOR)) if isinstance(each.source, Pod) and each.source.role == "doctor"
    ]
    assert {(place(each.target), each.port) for each in found} == {
        *(("10.0.0.1-10.0.0.1", f"TCP {port}") for port in (443, 6443)),
        ("monitoring", "TCP 9090"),
        *(("kube-system", f"{protocol} 53") for protocol in ("TCP", "UDP")),
    }
