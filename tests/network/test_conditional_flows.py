"""A conditional flow is allowed exactly while its values hold."""

from collections.abc import Mapping
from typing import Any

import pytest

from network.kit.compare import find_allowed, find_differences, find_expected
from network.kit.releases import render_one
from network.kit.world import Pod, World, world_of
from rayhelm.deploy.network import load_chart_flows

Values = Mapping[str, Any]
OPERATOR = "kuberay-system with app.kubernetes.io/component=kuberay-operator"
REDIS = {
    "gcsFaultTolerance": {"enabled": True, "redisAddress": "redis.state:6379"},
    "networkPolicy": {"redis": {"peer": {"namespace": "state"}}},
}
UPGRADE = {
    "upgrade": {
        "strategy": "NewClusterWithIncrementalUpgrade",
        "incremental": {"gatewayClassName": "istio", "gatewayService": "chat-gateway-istio.models.svc.cluster.local"},
    },
    "networkPolicy": {"allowedGateways": {"istio": {"namespace": "models", "podLabels": {"app": "istio"}}}},
}
IN_PLACE = UPGRADE | {"upgrade": {"strategy": "None"}}
LOCAL = {
    "weights": {"enabled": False},
    "serve": {"applications": {"chat": {"models": {"llama-8b": {"source": "/models/llama", "revision": None}}}}},
}
ONLINE = {"weights": {"offline": False, "onlineReason": "no shared volume in this cluster"}}
FIXED_REPLICAS = {"workerGroups": {"gpu": {"minReplicas": 2}}}
ENGINES = {
    "image": {"includesRayhelm": True},
    "scraping": {"kind": "PodMonitor"},
    "serve": {
        "prometheus": {"url": "http://prometheus.monitoring:9090"},
        "applications": {"chat": {"models": {"llama-8b": {"autoscaling": {"policy": {"kind": "EngineQueue"}}}}}},
    },
}
TRACED = {
    "image": {"includesRayhelm": True},
    "tracing": {"enabled": True, "endpoint": "http://otel-collector.observability:4317"},
    "networkPolicy": {"tracing": {"peer": {"namespace": "observability", "podLabels": {"app": "otel-collector"}}}},
}
STORE = {"networkPolicy": {"bucket": {"cidrs": ["10.3.0.0/16"], "ports": [9000]}}}
CONDITIONAL_FLOWS: dict[str, tuple[Values, list[Values]]] = {
    "autoscaler": ({}, [FIXED_REPLICAS]),
    "prometheus": (ENGINES, [{}]),
    "traces": (TRACED, [{}]),
    "redis": (REDIS, [{}]),
    "redis-cleanup": (REDIS, [{}]),
    "redis-cleanup-dns": (REDIS, [{}]),
    "weights": ({}, [LOCAL, {"weights": {"download": {"enabled": False}}}]),
    "bucket": (STORE, [STORE | LOCAL, STORE | {"weights": {"download": {"enabled": False}}}]),
    "weights-dns": ({}, [LOCAL, {"weights": {"download": {"enabled": False}}}]),
    "online": (ONLINE, [{}]),
    "test": ({}, [{"test": {"enabled": False}}]),
    "test-dns": ({}, [{"test": {"enabled": False}}]),
    "test-of-upgrades": (UPGRADE, [UPGRADE | {"test": {"enabled": False}}, IN_PLACE]),
}
"""By flow: values of chart ray-service that allow it, and values each of which denies it."""


def test_every_conditional_flow_has_a_case() -> None:
    flows = load_chart_flows()
    assert {name for name, flow in flows["ray-service"].flows.items() if flow.while_} == set(CONDITIONAL_FLOWS)
    assert not [flow for chart in ("gateway", "tenant") for flow in flows[chart].flows.values() if flow.while_]
    for name, (_, closed) in CONDITIONAL_FLOWS.items():
        assert len(closed) == len(flows["ray-service"].flows[name].while_), "one for each value"


@pytest.mark.parametrize("flow", CONDITIONAL_FLOWS)
def test_flow_is_allowed_when_its_conditions_hold(flow: str) -> None:
    opened = world(CONDITIONAL_FLOWS[flow][0])
    assert find_differences(opened) == []
    assert find_names_of_flow(flow, opened)
    assert find_names_of_flow(flow, opened) <= find_names(opened)


@pytest.mark.parametrize(
    ("flow", "values"), [(flow, off) for flow, (_, offs) in CONDITIONAL_FLOWS.items() for off in offs]
)
def test_flow_is_denied_when_one_condition_does_not_hold(flow: str, values: Values) -> None:
    closed = world(values)
    assert find_differences(closed) == []
    assert not find_names_of_flow(flow, closed)
    assert not find_names_of_flow(flow, world(CONDITIONAL_FLOWS[flow][0])) & find_names(closed)


@pytest.mark.parametrize(("value", "where"), [("operator", OPERATOR), ("prometheus", "monitoring")])
def test_peer_with_an_empty_namespace_selects_no_pod(value: str, where: str) -> None:
    assert where in {source for source, _, _ in find_names(world({}))}
    closed = world({"networkPolicy": {value: {"namespace": ""}}})
    assert find_differences(closed) == []
    assert where not in {source for source, _, _ in find_names(closed)}


def test_peer_with_labels_alone_selects_pods_of_the_namespace_of_the_release() -> None:
    labels = {"app": "router"}
    opened = world({"networkPolicy": {"allowedGateways": {"router": {"podLabels": labels}}}})
    assert find_differences(opened) == []
    (release,) = opened.network_releases
    assert (f"{release.namespace} with app=router", "chat worker", "TCP 8000") in find_names(opened)


def test_egress_of_workers_applies_to_workers_only() -> None:
    bucket = world({"networkPolicy": {"egress": {"bucket": {"cidrs": ["10.3.0.0/16"], "ports": [9000]}}}})
    assert find_differences(bucket) == []
    assert {connection for connection in find_names(bucket) if connection[2] == "TCP 9000"} == {
        ("chat worker", "10.3.0.0-10.3.255.255", "TCP 9000")
    }


def test_excluded_addresses_of_the_hub_are_denied() -> None:
    without = world({"networkPolicy": {"hub": {"except": ["169.254.0.0/16", "10.0.0.0/8"]}}})
    assert find_differences(without) == []
    blocks = {
        connection[1]
        for connection in find_names(without)
        if connection[0] == "chat download" and connection[2] == "TCP 443"
    }
    assert blocks == {"0.0.0.0-9.255.255.255", "11.0.0.0-169.253.255.255", "169.255.0.0-255.255.255.255"}


def test_only_the_download_reaches_a_mirror_in_the_cluster() -> None:
    mirrored = world({"networkPolicy": {"hub": {"peer": {"namespace": "hub"}, "cidrs": [], "ports": [8080]}}})
    assert find_differences(mirrored) == []
    assert {connection for connection in find_names(mirrored) if connection[1] == "hub"} == {
        ("chat download", "hub", "TCP 8080")
    }
    assert not [
        connection
        for connection in find_names(mirrored)
        if connection[2] == "TCP 443" and connection[0] == "chat download"
    ]


def test_only_the_download_reaches_a_bucket() -> None:
    values = {"networkPolicy": {"bucket": {"cidrs": ["10.3.0.0/16"], "ports": [9000]}, "hub": {"cidrs": []}}}
    store = world(values)
    assert find_differences(store) == []
    downloads = {name for name in find_names(store) if name[0] == "chat download" and not name[2].endswith(" 53")}
    assert downloads == {("chat download", "10.3.0.0-10.3.255.255", "TCP 9000")}


def test_all_connections_are_allowed_without_policies() -> None:
    """Without this test, the comparison could compare two empty lists."""
    open_ = render_one("ray-service", {"networkPolicy": {"enabled": False, "reason": "a mesh does it"}})
    off = world_of([open_, render_one("gateway", name="gateway", namespace="gateway")])
    assert ("a pod without labels in elsewhere", "chat head", "every") in find_names(off)
    assert any(f"open, but no flow says so: {OPERATOR} -> chat head, every" in line for line in find_differences(off))


def world(values: Values) -> World:
    """Render a service in a namespace that belongs to no tenant: only its own policies deny connections."""
    return world_of([render_one("ray-service", values)])


def find_names_of_flow(flow: str, world: World) -> set[tuple[str, str, str]]:
    return {_describe(connection) for connection, allowed in find_expected(world).items() if allowed.flow == flow}


def find_names(world: World) -> set[tuple[str, str, str]]:
    return {_describe(connection) for connection in find_allowed(world)}


def _describe(connection: Any) -> tuple[str, str, str]:
    source, target = (end.about if isinstance(end, Pod) else str(end) for end in (connection.source, connection.target))
    return source, target, connection.port
