"""A connection between pods that both have policies needs both: a flow that one end alone opens is told."""

from pathlib import Path

import pytest

from network.kit.compare import differences, reached
from network.kit.releases import installed, one
from network.kit.world import Pod, World, world_of
from rayhelm.charts.helm import charts_dir
from rayhelm.render.files import render_loaded_fleet
from rayhelm.spec.document import parse_document
from rayhelm.spec.load import parse_fleet

FLEET = charts_dir().parent / "values/two-workstations/fleet.yaml"
"""Its one tenant, `lab`, owns the service."""


def edited(old: str, new: str) -> World:
    """The fleet after an edit of its file."""
    text = Path(FLEET).read_text()
    assert old in text
    rendered = render_loaded_fleet(parse_fleet(parse_document(text.replace(old, new), str(FLEET))))
    return world_of(pair for release in rendered.releases for pair in installed(release))


def callers(world: World, role: str, port: str) -> set[str]:
    return {
        way.source.about
        for way in reached(world)
        if isinstance(way.source, Pod) and isinstance(way.target, Pod)
        if way.target.role == role and way.port == port
    }


def test_own_pods_of_a_tenant_reach_the_gateway_and_its_services_do_not() -> None:
    world = edited("allowedClients: [apps]", "allowedClients: [lab]")
    assert differences(world) == []
    assert callers(world, "gateway", "TCP 8080") == {"a pod without labels in lab"}


def test_own_pods_of_a_tenant_reach_a_service_by_its_aliases() -> None:
    aliases = "{tenant: lab, aliases: {namespace: lab, names: [qwen-predictor]}}"
    world = edited("qwen3-32b: {tenant: lab}", f"qwen3-32b: {aliases}")
    assert differences(world) == []
    assert callers(world, "worker", "TCP 8000") == {"gateway", "qwen3-32b test", "a pod without labels in lab"}


def test_comparison_reports_a_tenant_without_egress_to_its_gateway() -> None:
    inside = {"networkPolicy": {"allowedClients": {"own": {"namespace": "research"}}}}
    world = world_of([one("tenant", name="research"), one("gateway", inside, name="gateway", namespace="gateway")])
    (said,) = differences(world)
    assert said.startswith("open at one end alone, by flow `clients` of gateway gateway: ")
    assert said.endswith("research -> gateway, TCP 8080")


@pytest.mark.parametrize(("named", "said"), [("gateway", []), ("elsewhere", ["upstream", "serve"])])
def test_comparison_reports_a_gateway_and_a_service_with_one_open_end(named: str, said: list[str]) -> None:
    callers = {
        "networkPolicy": {
            "allowedGateways": {"door": {"namespace": named, "podLabels": {"rayhelm.dev/gateway": "gateway"}}}
        }
    }
    world = world_of([one("ray-service", callers), one("gateway", name="gateway", namespace="gateway")])
    found = differences(world)
    assert [flow for flow in ("upstream", "serve") if any(f"by flow `{flow}`" in line for line in found)] == said[:1]


def test_extra_policy_opens_both_ends_when_they_are_in_the_same_namespace() -> None:
    policy = {
        "podLabels": {"app": "cache"},
        "ingress": {"from": {"web": {"namespace": "research", "podLabels": {"app": "web"}}}, "ports": [6379]},
        "egress": {"to": {"disk": {"peer": {"namespace": "research", "podLabels": {"app": "disk"}}}}, "ports": [9000]},
    }
    world = world_of([one("tenant", {"networkPolicy": {"extraPolicies": {"cache": policy}}}, name="research")])
    assert differences(world) == []
    ways = {(way.source.about, way.target.about, way.port) for way in reached(world) if isinstance(way.target, Pod)}
    assert ("research with app=web", "research with app=cache", "TCP 6379") in ways
    assert ("research with app=cache", "research with app=disk", "TCP 9000") in ways
