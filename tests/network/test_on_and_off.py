"""Each flow that a value opens is there while the value is so, and gone with it."""

from collections.abc import Mapping
from typing import Any

import pytest

from network.kit.compare import differences, expected, reached
from network.kit.releases import one
from network.kit.world import Pod, World, world_of
from rayhelm.network import load_chart_flows

Values = Mapping[str, Any]
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
STEADY = {"autoscaler": {"enabled": False}, "workerGroups": {"gpu": {"minReplicas": 2}}}
ENGINES = {
    "image": {"includesRayhelm": True},
    "podMonitor": {"enabled": True},
    "serve": {
        "prometheus": {"url": "http://prometheus.monitoring:9090"},
        "applications": {"chat": {"models": {"llama-8b": {"autoscaling": {"policy": {"kind": "EngineQueue"}}}}}},
    },
}
ON_AND_OFF: dict[str, tuple[Values, list[Values]]] = {
    "autoscaler": ({}, [STEADY]),
    "prometheus": (ENGINES, [{}]),
    "redis": (REDIS, [{}]),
    "redis-cleanup": (REDIS, [{}]),
    "redis-cleanup-dns": (REDIS, [{}]),
    "weights": ({}, [LOCAL, {"weights": {"download": {"enabled": False}}}]),
    "weights-dns": ({}, [LOCAL, {"weights": {"download": {"enabled": False}}}]),
    "online": (ONLINE, [{}]),
    "test": ({}, [{"test": {"enabled": False}}]),
    "test-dns": ({}, [{"test": {"enabled": False}}]),
    "test-of-upgrades": (UPGRADE, [UPGRADE | {"test": {"enabled": False}}, IN_PLACE]),
}
"""Values of chart ray-service with which a flow is open, and some with each of which it is closed."""


def test_every_conditional_flow_has_a_case() -> None:
    flows = load_chart_flows()
    assert {name for name, flow in flows["ray-service"].flows.items() if flow.while_} == set(ON_AND_OFF)
    assert not [flow for chart in ("gateway", "tenant") for flow in flows[chart].flows.values() if flow.while_]
    for name, (_, closed) in ON_AND_OFF.items():
        assert len(closed) == len(flows["ray-service"].flows[name].while_), "one for each value"


@pytest.mark.parametrize("flow", ON_AND_OFF)
def test_flow_is_allowed_when_its_conditions_hold(flow: str) -> None:
    opened = world(ON_AND_OFF[flow][0])
    assert differences(opened) == []
    assert ways_of(flow, opened)
    assert ways_of(flow, opened) <= told(opened)


@pytest.mark.parametrize(("flow", "values"), [(flow, off) for flow, (_, offs) in ON_AND_OFF.items() for off in offs])
def test_flow_is_denied_when_one_condition_does_not_hold(flow: str, values: Values) -> None:
    closed = world(values)
    assert differences(closed) == []
    assert not ways_of(flow, closed)
    assert not ways_of(flow, world(ON_AND_OFF[flow][0])) & told(closed)


@pytest.mark.parametrize(("value", "where"), [("operator", "kuberay-system"), ("prometheus", "monitoring")])
def test_peer_without_a_namespace_selects_no_pod(value: str, where: str) -> None:
    assert where in {source for source, _, _ in told(world({}))}
    nobody = world({"networkPolicy": {value: {"namespace": ""}}})
    assert differences(nobody) == []
    assert where not in {source for source, _, _ in told(nobody)}


def test_egress_of_workers_applies_to_workers_only() -> None:
    bucket = world({"networkPolicy": {"egress": {"bucket": {"cidrs": ["10.3.0.0/16"], "ports": [9000]}}}})
    assert differences(bucket) == []
    assert {way for way in told(bucket) if way[2] == "TCP 9000"} == {
        ("chat worker", "10.3.0.0-10.3.255.255", "TCP 9000")
    }


def test_excluded_addresses_of_the_hub_are_denied() -> None:
    without = world({"networkPolicy": {"hub": {"except": ["169.254.0.0/16", "10.0.0.0/8"]}}})
    assert differences(without) == []
    blocks = {way[1] for way in told(without) if way[0] == "chat download" and way[2] == "TCP 443"}
    assert blocks == {"0.0.0.0-9.255.255.255", "11.0.0.0-169.253.255.255", "169.255.0.0-255.255.255.255"}


def test_only_the_download_reaches_a_mirror_in_the_cluster() -> None:
    mirrored = world({"networkPolicy": {"hub": {"peer": {"namespace": "hub"}, "cidrs": [], "ports": [8080]}}})
    assert differences(mirrored) == []
    assert {way for way in told(mirrored) if way[1] == "hub"} == {("chat download", "hub", "TCP 8080")}
    assert not [way for way in told(mirrored) if way[2] == "TCP 443" and way[0] == "chat download"]


def test_all_connections_are_allowed_without_policies() -> None:
    """So the comparison is no comparison of nothing with nothing."""
    open_ = one("ray-service", {"networkPolicy": {"enabled": False, "reason": "a mesh does it"}})
    off = world_of([open_, one("gateway", name="gateway", namespace="gateway")])
    assert ("a pod without labels in elsewhere", "chat head", "every") in told(off)
    assert any("open, but no flow says so: kuberay-system -> chat head, every" in line for line in differences(off))


def world(values: Values) -> World:
    """A service in a namespace without walls, so that nothing but its own policies closes anything."""
    return world_of([one("ray-service", values)])


def ways_of(flow: str, world: World) -> set[tuple[str, str, str]]:
    return {_told(way) for way, allowed in expected(world).items() if allowed.flow == flow}


def told(world: World) -> set[tuple[str, str, str]]:
    return {_told(way) for way in reached(world)}


def _told(way: Any) -> tuple[str, str, str]:
    source, target = (end.about if isinstance(end, Pod) else str(end) for end in (way.source, way.target))
    return source, target, way.port
