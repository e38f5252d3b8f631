"""Connections that no cluster allows, tested without the list of flows."""

from pathlib import Path

import pytest

from network.kit.analyzer import Block, list_connections
from network.kit.compare import find_allowed
from network.kit.releases import FLEETS, Fleet, fleet_world, render_one, render_release
from network.kit.world import Pod, World, world_of
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.deploy.render.files import render_fleet

JOINED = ("three-tiers", "two-clusters")
"""Fleets whose gateways forward requests to each other."""
WITH_TLS = ("three-tiers-edge", "two-clusters-eu", "two-clusters-us")
"""Clusters whose gateway has TLS of its own, for addresses outside of it."""
TENANTS = [
    fleet
    for fleet in FLEETS
    if any(network_release.chart == "tenant" for network_release in fleet_world(fleet).network_releases)
]


def find_client_namespaces(world: World, port: str, *, role: str, inside: bool = False) -> set[str]:
    """Find the namespaces, or `outside`, that reach a port of pods; the pods' own Ray cluster only if `inside`."""
    return {
        "outside" if isinstance(connection.source, Block) else connection.source.namespace
        for connection in find_allowed(world)
        if isinstance(connection.target, Pod) and connection.target.role == role and connection.port in (port, "every")
        if inside or isinstance(connection.source, Block) or connection.source.release != connection.target.release
    }


@pytest.mark.parametrize("fleet", FLEETS, ids=str)
def test_only_the_operator_reaches_the_dashboard(fleet: Fleet) -> None:
    world = fleet_world(fleet)
    assert find_client_namespaces(world, "TCP 8265", role="head") == {"kuberay-system"}
    strangers = {pod.key for pod in world.pods if pod.namespace == "kuberay-system" and not pod.labels}
    heads = {pod.key for pod in world.pods if pod.role == "head"}
    assert strangers, "or the next line proves nothing"
    assert not [each for each in list_connections(world) if each.source in strangers and each.target in heads]


@pytest.mark.parametrize("fleet", FLEETS, ids=str)
def test_no_pod_reaches_the_ray_client_port_and_gcs(fleet: Fleet) -> None:
    for port in ("TCP 10001", "TCP 6379"):
        assert find_client_namespaces(fleet_world(fleet), port, role="head") == set()


@pytest.mark.parametrize("fleet", FLEETS, ids=str)
def test_allowed_gateways_reach_the_serve_port_of_workers_only(fleet: Fleet) -> None:
    world = fleet_world(fleet)
    assert find_client_namespaces(world, "TCP 8000", role="head") == set()
    assert find_client_namespaces(world, "TCP 8000", role="worker") == {"gateway"} | (
        {"ai-ml"} if fleet.name == "homelab" else set()
    )


@pytest.mark.parametrize("fleet", FLEETS, ids=str)
def test_only_prometheus_reads_metrics(fleet: Fleet) -> None:
    world = fleet_world(fleet)
    assert find_client_namespaces(world, "TCP 8404", role="gateway") == {"monitoring"}
    for role in ("head", "worker"):
        assert find_client_namespaces(world, "TCP 8080", role=role) == {"monitoring"}


@pytest.mark.parametrize("fleet", FLEETS, ids=str)
def test_no_address_outside_the_cluster_reaches_a_pod(fleet: Fleet) -> None:
    found = {
        (connection.target.role, connection.port)
        for connection in find_allowed(fleet_world(fleet))
        if isinstance(connection.source, Block) and isinstance(connection.target, Pod)
    }
    assert found == ({("gateway", "TCP 8080")} if str(fleet) in WITH_TLS else set())


def test_only_heads_of_the_owner_reach_its_redis(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    text = (charts_dir().parent / "values/multi-node/fleet.yaml").read_text()
    file.write_text(text.replace("passwordSecret:", "podLabels: {app: redis}, passwordSecret:"))
    world = world_of(each for release in render_fleet(file).releases for each in render_release(release))
    pods = {pod.key: pod for pod in world.pods}
    redis = {key for key, pod in pods.items() if pod.labels.get("app") == "redis" and pod.namespace.endswith("-state")}
    assert len(redis) == 2
    found = {(each.source, each.target) for each in list_connections(world) if each.target in redis - {each.source}}
    assert {target for _, target in found} == redis
    for source, target in found:
        client = pods[source]
        assert client.role in ("head", "redis-cleanup"), client
        assert f"{client.namespace}-state" == pods[target].namespace


@pytest.mark.parametrize("fleet", FLEETS, ids=str)
def test_no_pod_reaches_jobs(fleet: Fleet) -> None:
    for role in ("download", "test", "redis-cleanup"):
        assert not [
            connection
            for connection in find_allowed(fleet_world(fleet))
            if isinstance(connection.target, Pod) and connection.target.role == role
        ]


@pytest.mark.parametrize("fleet", FLEETS, ids=str)
def test_only_head_and_download_reach_addresses_outside_the_cluster(fleet: Fleet) -> None:
    connections = {
        connection for connection in find_allowed(fleet_world(fleet)) if isinstance(connection.target, Block)
    }
    found = {(connection.source.role, connection.port) for connection in connections}
    assert ("download", "TCP 443") in found
    forwards = {("gateway", "TCP 443")} if fleet.name in JOINED else set()
    assert forwards <= found <= forwards | {("head", "TCP 443"), ("head", "TCP 6443"), ("download", "TCP 443")}
    assert all(
        connection.target.first == connection.target.last
        for connection in connections
        if connection.source.role == "head"
    ), "one address"


@pytest.mark.parametrize("fleet", FLEETS, ids=str)
def test_gateway_reaches_only_workers_and_dns(fleet: Fleet) -> None:
    connections = {
        connection
        for connection in find_allowed(fleet_world(fleet))
        if isinstance(connection.source, Pod) and connection.source.role == "gateway"
    }
    found = {
        (
            "outside" if isinstance(to := connection.target, Block) else to.role or to.namespace,
            connection.port,
        )
        for connection in connections
    }
    assert found == {("worker", "TCP 8000"), ("kube-system", "TCP 53"), ("kube-system", "UDP 53")} | (
        {("outside", "TCP 443")} if fleet.name in JOINED else set()
    )


@pytest.mark.parametrize("fleet", TENANTS, ids=str)
def test_tenants_do_not_reach_each_other(fleet: Fleet) -> None:
    world = fleet_world(fleet)
    spaces = {
        network_release.namespace for network_release in world.network_releases if network_release.chart == "tenant"
    }
    crossing = [
        (connection.source.about, connection.target.about)
        for connection in find_allowed(world)
        if isinstance(connection.source, Pod) and isinstance(connection.target, Pod)
        if {connection.source.namespace, connection.target.namespace} <= spaces
        and connection.source.namespace != connection.target.namespace
    ]
    assert not crossing


def test_own_pod_of_a_tenant_reaches_only_dns_and_is_not_reachable() -> None:
    connections = {
        connection
        for connection in find_allowed(fleet_world(Fleet("multi-node", "main")))
        for end in (connection.source, connection.target)
        if isinstance(end, Pod) and end.about == "a pod without labels in research"
    }
    assert {(connection.target.namespace, connection.port) for connection in connections} == {
        ("kube-system", "TCP 53"),
        ("kube-system", "UDP 53"),
    }


def test_two_services_of_one_namespace_do_not_reach_each_other() -> None:
    chat, other = render_one("ray-service", name="chat"), render_one("ray-service", name="other")
    assert chat[0].namespace == other[0].namespace
    between = [
        (connection.source.about, connection.target.about)
        for connection in find_allowed(world_of([chat, other]))
        if isinstance(connection.source, Pod) and isinstance(connection.target, Pod)
        if {connection.source.release, connection.target.release} == {"ray-service/chat", "ray-service/other"}
    ]
    assert not between
