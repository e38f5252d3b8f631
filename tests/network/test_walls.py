"""What nobody may do, said without the list of flows."""

import pytest

from network.kit.analyser import Block
from network.kit.compare import reached
from network.kit.releases import FLEETS, Fleet, fleet_world, one
from network.kit.world import Pod, World, world_of

TENANTS = [
    fleet
    for fleet in FLEETS
    if any(network_release.chart == "tenant" for network_release in fleet_world(fleet).network_releases)
]


def callers(world: World, port: str, *, role: str, inside: bool = False) -> set[str]:
    """Namespaces, or `outside`, that reach a port of pods; their own Ray cluster only where `inside`."""
    return {
        "outside" if isinstance(way.source, Block) else way.source.namespace
        for way in reached(world)
        if isinstance(way.target, Pod) and way.target.role == role and way.port in (port, "every")
        if inside or isinstance(way.source, Block) or way.source.release != way.target.release
    }


@pytest.mark.parametrize("fleet", FLEETS, ids=str)
def test_only_the_operator_reaches_the_dashboard(fleet: Fleet) -> None:
    assert callers(fleet_world(fleet), "TCP 8265", role="head") == {"kuberay-system"}


@pytest.mark.parametrize("fleet", FLEETS, ids=str)
def test_no_pod_reaches_the_ray_client_port_and_gcs(fleet: Fleet) -> None:
    for port in ("TCP 10001", "TCP 6379"):
        assert callers(fleet_world(fleet), port, role="head") == set()


@pytest.mark.parametrize("fleet", FLEETS, ids=str)
def test_allowed_gateways_reach_the_serve_port_of_workers_only(fleet: Fleet) -> None:
    world = fleet_world(fleet)
    assert callers(world, "TCP 8000", role="head") == set()
    assert callers(world, "TCP 8000", role="worker") == {"gateway"} | ({"ai-ml"} if fleet.name == "homelab" else set())


@pytest.mark.parametrize("fleet", FLEETS, ids=str)
def test_only_prometheus_reads_metrics(fleet: Fleet) -> None:
    world = fleet_world(fleet)
    assert callers(world, "TCP 8404", role="gateway") == {"monitoring"}
    for role in ("head", "worker"):
        assert callers(world, "TCP 8080", role=role) == {"monitoring"}


@pytest.mark.parametrize("fleet", FLEETS, ids=str)
def test_no_address_outside_the_cluster_reaches_a_pod(fleet: Fleet) -> None:
    assert not [way for way in reached(fleet_world(fleet)) if isinstance(way.source, Block)]


@pytest.mark.parametrize("fleet", FLEETS, ids=str)
def test_no_pod_reaches_jobs(fleet: Fleet) -> None:
    for role in ("download", "test", "redis-cleanup"):
        assert not [
            way for way in reached(fleet_world(fleet)) if isinstance(way.target, Pod) and way.target.role == role
        ]


@pytest.mark.parametrize("fleet", FLEETS, ids=str)
def test_only_head_and_download_reach_addresses_outside_the_cluster(fleet: Fleet) -> None:
    ways = {way for way in reached(fleet_world(fleet)) if isinstance(way.target, Block)}
    assert {(way.source.role, way.port) for way in ways} == {
        ("head", "TCP 443"), ("head", "TCP 6443"), ("download", "TCP 443"),
    }  # fmt: skip
    assert all(way.target.first == way.target.last for way in ways if way.source.role == "head"), "one address"


@pytest.mark.parametrize("fleet", FLEETS, ids=str)
def test_gateway_reaches_only_workers_and_dns(fleet: Fleet) -> None:
    ways = {way for way in reached(fleet_world(fleet)) if isinstance(way.source, Pod) and way.source.role == "gateway"}
    assert {(way.target.role or way.target.namespace, way.port) for way in ways} == {
        ("worker", "TCP 8000"), ("kube-system", "TCP 53"), ("kube-system", "UDP 53"),
    }  # fmt: skip


@pytest.mark.parametrize("fleet", TENANTS, ids=str)
def test_tenants_do_not_reach_each_other(fleet: Fleet) -> None:
    world = fleet_world(fleet)
    spaces = {
        network_release.namespace for network_release in world.network_releases if network_release.chart == "tenant"
    }
    crossing = [
        (way.source.about, way.target.about)
        for way in reached(world)
        if isinstance(way.source, Pod) and isinstance(way.target, Pod)
        if {way.source.namespace, way.target.namespace} <= spaces and way.source.namespace != way.target.namespace
    ]
    assert not crossing


def test_own_pod_of_a_tenant_reaches_only_dns_and_is_not_reachable() -> None:
    ways = {
        way
        for way in reached(fleet_world(Fleet("multi-node", "main")))
        for end in (way.source, way.target)
        if isinstance(end, Pod) and end.about == "a pod without labels in research"
    }
    assert {(way.target.namespace, way.port) for way in ways} == {("kube-system", "TCP 53"), ("kube-system", "UDP 53")}


def test_two_services_of_one_namespace_do_not_reach_each_other() -> None:
    chat, other = one("ray-service", name="chat"), one("ray-service", name="other")
    assert chat[0].namespace == other[0].namespace
    between = [
        (way.source.about, way.target.about)
        for way in reached(world_of([chat, other]))
        if isinstance(way.source, Pod) and isinstance(way.target, Pod)
        if {way.source.release, way.target.release} == {"ray-service/chat", "ray-service/other"}
    ]
    assert not between
