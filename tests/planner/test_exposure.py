"""Warnings about the way of clients to a gateway, and about CIDRs that are all addresses."""

import pytest

from shared.fleets import plan

FLEET = """
fleet: acme
clusters: {main: {apiServer: {cidrs: [%s]}, gateway: {host: ai.example.com, %s}}}
pools: {gpu: {gpu: L4-24GB, nodes: 1}}
models: {chat: {source: Qwen/Qwen3-8B, context: 8192}}
services: {chat: {tenant: apps}}
tenants: {apps: {models: [chat]}}
"""
ROUTE = "ingress: {className: %s, tlsSecret: ai-tls}, allowedClients: [%s]"


def warnings(gateway: str, cidr: str = "10.0.0.1/32") -> list[str]:
    return [text for text in plan(FLEET % (cidr, gateway)).warnings if text.startswith("`clusters.")]


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("nginx", 'nginx.ingress.kubernetes.io/proxy-read-timeout: "1300"'),
        ("alb", 'alb.ingress.kubernetes.io/load-balancer-attributes: "idle_timeout.timeout_seconds=1300"'),
        ("azure-application-gateway", 'appgw.ingress.kubernetes.io/request-timeout: "1300"'),
    ],
)
def test_ingress_that_ends_long_responses_is_warned_of(kind: str, key: str) -> None:
    (warning,) = warnings(ROUTE % (kind, "ingress-nginx"))
    assert warning.startswith("`clusters.main.gateway.ingress.annotations` lacks ")
    assert key in warning


def test_ingress_of_an_unknown_class_is_not_warned_of() -> None:
    assert not warnings(ROUTE % ("own", "ingress-nginx"))


def test_ingress_with_its_annotations_is_not_warned_of() -> None:
    route = ROUTE % ("nginx", "ingress-nginx")
    keys = "nginx.ingress.kubernetes.io/proxy-read-timeout: '600', nginx.ingress.kubernetes.io/proxy-body-size: 64m"
    assert not warnings(route.replace("ai-tls}", f"ai-tls, annotations: {{{keys}}}}}"))


@pytest.mark.parametrize("route", ["ingress: {className: own, tlsSecret: a}", "httpRoute: {gateway: shared}"])
def test_controller_is_warned_of_when_only_tenants_are_allowed(route: str) -> None:
    (warning,) = warnings(f"{route}, allowedClients: [apps]")
    assert "has only namespaces of tenants (apps), and the NetworkPolicy refuses the controller" in warning
    assert not warnings(f"{route}, allowedClients: [apps, infra]")


@pytest.mark.parametrize("cidr", ["0.0.0.0/0", "'::/0'"])
def test_cidr_of_all_addresses_is_warned_of(cidr: str) -> None:
    (warning,) = warnings(ROUTE % ("own", "infra"), cidr)
    assert "`clusters.main.apiServer.cidrs` has" in warning
    assert "allows all addresses, so write those that are used" in warning
