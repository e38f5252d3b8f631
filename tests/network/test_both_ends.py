"""A connection between two pods with policies needs both policies; the comparison reports a flow of one end only."""

from pathlib import Path

import pytest

from network.kit.compare import find_allowed, find_differences
from network.kit.releases import render_one, render_release
from network.kit.world import Pod, World, world_of
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.deploy.render.files import render_plan
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import parse_fleet
from rayhelm.planner.planner import plan_fleet

FLEET = charts_dir().parent / "values/two-workstations/fleet.yaml"
"""Its one tenant, `lab`, owns the service."""


def edited(old: str, new: str) -> World:
    """The fleet after an edit of its file."""
    text = Path(FLEET).read_text()
    assert old in text
    rendered = render_plan(plan_fleet(parse_fleet(parse_document(text.replace(old, new), str(FLEET)))))
    return world_of(pair for release in rendered.releases for pair in render_release(release))


def find_clients(world: World, role: str, port: str) -> set[str]:
    return {
        connection.source.about
        for connection in find_allowed(world)
        if isinstance(connection.source, Pod) and isinstance(connection.target, Pod)
        if connection.target.role == role and connection.port == port
    }


def test_own_pods_of_a_tenant_reach_the_gateway_and_its_services_do_not() -> None:
    world = edited("allowedClients: [apps]", "allowedClients: [lab]")
    assert find_differences(world) == []
    assert find_clients(world, "gateway", "TCP 8080") == {"a pod without labels in lab"}


def test_own_pods_of_a_tenant_reach_a_service_by_its_aliases() -> None:
    aliases = "{tenant: lab, aliases: {namespace: lab, names: [qwen-predictor]}}"
    world = edited("qwen3-32b: {tenant: lab}", f"qwen3-32b: {aliases}")
    assert find_differences(world) == []
    assert find_clients(world, "worker", "TCP 8000") == {"gateway", "qwen3-32b test", "a pod without labels in lab"}


def test_comparison_reports_a_tenant_without_egress_to_its_gateway() -> None:
    inside = {"networkPolicy": {"allowedClients": {"own": {"namespace": "research"}}}}
    world = world_of(
        [render_one("tenant", name="research"), render_one("gateway", inside, name="gateway", namespace="gateway")]
    )
    (message,) = find_differences(world)
    assert message.startswith("open at one end alone, by flow `clients` of gateway gateway: ")
    assert message.endswith("research -> gateway, TCP 8080")


@pytest.mark.parametrize(("named", "message"), [("gateway", []), ("elsewhere", ["upstream", "serve"])])
def test_comparison_reports_a_gateway_and_a_service_with_one_open_end(named: str, message: list[str]) -> None:
    values = {
        "networkPolicy": {
            "allowedGateways": {"shared": {"namespace": named, "podLabels": {"rayhelm.dev/gateway": "gateway"}}}
        }
    }
    world = world_of([render_one("ray-service", values), render_one("gateway", name="gateway", namespace="gateway")])
    found = find_differences(world)
    assert [flow for flow in ("upstream", "serve") if any(f"by flow `{flow}`" in line for line in found)] == message[:1]


def test_extra_policy_opens_both_ends_when_they_are_in_the_same_namespace() -> None:
    policy = {
        "podLabels": {"app": "cache"},
        "ingress": {"from": {"web": {"namespace": "research", "podLabels": {"app": "web"}}}, "ports": [6379]},
        "egress": {"to": {"disk": {"peer": {"namespace": "research", "podLabels": {"app": "disk"}}}}, "ports": [9000]},
    }
    world = world_of([render_one("tenant", {"networkPolicy": {"extraPolicies": {"cache": policy}}}, name="research")])
    assert find_differences(world) == []
    connections = {
        (connection.source.about, connection.target.about, connection.port)
        for connection in find_allowed(world)
        if isinstance(connection.target, Pod)
    }
    assert ("research with app=web", "research with app=cache", "TCP 6379") in connections
    assert ("research with app=cache", "research with app=disk", "TCP 9000") in connections
