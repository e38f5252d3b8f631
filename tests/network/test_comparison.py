"""The comparison finds a policy that allows too much or too little, and names the flow."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest

from charts.kit import Object
from network.kit.compare import find_differences
from network.kit.releases import RELEASES, Fleet, fleet_world, render_alone
from network.kit.world import World

PLAIN = Fleet("single-gpu", "main")
"""Without tenants: only the releases' own policies deny connections."""
TENANTS = Fleet("multi-node", "main")
OPERATOR = "kuberay-system with app.kubernetes.io/component=kuberay-operator"
ALL_NAMESPACES: Object = {"namespaceSelector": {}}

Edit = Callable[[Object], object]


class Case(NamedTuple):
    """An edit of a policy's spec (None removes the policy) and the message that it must cause."""

    fleet: Fleet
    policy: str
    edit: Edit | None
    message: str


TOO_MUCH = {
    "no default deny": Case(
        PLAIN, "llama-8b-default-deny", None,
        "a pod without labels in elsewhere -> llama-8b test, every",
    ),
    "no default deny of a tenant": Case(
        TENANTS, "research-default-deny", None,
        "a pod without labels in elsewhere -> a pod without labels in research, every",
    ),
    "a default deny for some pods": Case(
        TENANTS, "research-default-deny", lambda spec: spec["podSelector"].update(matchLabels={"app": "web"}),
        "a pod without labels in elsewhere -> a pod without labels in research, every",
    ),
    "every namespace": Case(
        PLAIN, "llama-8b-worker", lambda spec: spec["ingress"][0]["from"].append(ALL_NAMESPACES),
        "a pod without labels in elsewhere -> llama-8b worker, TCP 8000",
    ),
    "every namespace, for pods with the labels": Case(
        PLAIN, "llama-8b-worker", lambda spec: spec["ingress"][0]["from"][0].update(ALL_NAMESPACES),
        "a pod in elsewhere with rayhelm.dev/gateway=gateway -> llama-8b worker, TCP 8000",
    ),
    "every pod of a namespace": Case(
        PLAIN, "llama-8b-worker", lambda spec: spec["ingress"][0]["from"][0].pop("podSelector"),
        "a pod without labels in gateway -> llama-8b worker, TCP 8000",
    ),
    "an empty list of peers": Case(
        PLAIN, "llama-8b-worker", lambda spec: spec["ingress"][0]["from"].clear(),
        "0.0.0.0-255.255.255.255 -> llama-8b worker, TCP 8000",
    ),
    "no peers": Case(
        PLAIN, "llama-8b-head", lambda spec: spec.update(ingress=[{}]),
        "0.0.0.0-255.255.255.255 -> llama-8b head, every",
    ),
    "one more port": Case(
        PLAIN, "llama-8b-head", lambda spec: spec["ingress"][0]["ports"].append({"port": 10001, "protocol": "TCP"}),
        f"{OPERATOR} -> llama-8b head, TCP 10001",
    ),
    "a range of ports": Case(
        PLAIN, "llama-8b-head", lambda spec: spec["ingress"][0]["ports"][0].update(endPort=8270),
        f"{OPERATOR} -> llama-8b head, TCP 8265-8270",
    ),
    "every port": Case(
        PLAIN, "llama-8b-head", lambda spec: spec["ingress"][0].pop("ports"),
        f"{OPERATOR} -> llama-8b head, every",
    ),
    "every port of the DNS": Case(
        TENANTS, "research-dns", lambda spec: spec["egress"][0].pop("ports"),
        "llama-405b head -> kube-system with k8s-app=kube-dns, every",
    ),
    "the gateway's metrics": Case(
        PLAIN, "gateway", lambda spec: spec["ingress"][0]["ports"].append({"port": 8404, "protocol": "TCP"}),
        "apps -> gateway, TCP 8404",
    ),
    "one more block of addresses": Case(
        PLAIN, "llama-8b-head", lambda spec: spec.update(egress=[{"to": [{"ipBlock": {"cidr": "10.9.0.0/16"}}]}]),
        "llama-8b head -> 10.9.0.0-10.9.255.255, every",
    ),
    "a wider selector": Case(
        PLAIN, "llama-8b-cluster", lambda spec: spec["podSelector"].update(matchExpressions=[]),
        "monitoring -> llama-8b download, TCP 8080",
    ),
    "a flow of another value": Case(
        PLAIN, "llama-8b-download", lambda spec: spec["podSelector"]["matchExpressions"][0]["values"].append("worker"),
        "llama-8b worker -> 0.0.0.0-255.255.255.255, TCP 443"
        " (flow `online` of ray-service llama-8b is for weights.offline: false)",
    ),
    "the pod that empties Redis as a head": Case(
        PLAIN, "llama-8b-cluster", lambda spec: spec["podSelector"]["matchExpressions"].pop(),
        "llama-8b redis-cleanup -> kube-system with k8s-app=kube-dns, TCP 53"
        " (flow `redis-cleanup-dns` of ray-service llama-8b is for gcsFaultTolerance.enabled: true)",
    ),
}  # fmt: skip

TOO_LITTLE = {
    "serve": Case(PLAIN, "llama-8b-worker", None, "ray-service llama-8b: gateway -> llama-8b worker, TCP 8000"),
    "operator": Case(PLAIN, "llama-8b-head", None, f"ray-service llama-8b: {OPERATOR} -> llama-8b head, TCP 8265"),
    "inside": Case(PLAIN, "llama-8b-cluster", None, "ray-service llama-8b: llama-8b head -> llama-8b worker, every"),
    "test": Case(PLAIN, "llama-8b-test", None, "ray-service llama-8b: llama-8b test -> llama-8b worker, TCP 8000"),
    "weights": Case(
        PLAIN, "llama-8b-download", lambda spec: spec["egress"][1]["to"][0]["ipBlock"].update(cidr="0.0.0.0/1"),
        "ray-service llama-8b: llama-8b download -> 0.0.0.0-255.255.255.255, TCP 443",
    ),
    "redis-cleanup": Case(
        TENANTS, "llama-70b-redis-cleanup", None,
        "ray-service llama-70b: llama-70b redis-cleanup -> assistants-state, TCP 6379",
    ),
    "serve, by the gateway": Case(
        PLAIN, "gateway", lambda spec: spec["egress"].pop(),
        "ray-service llama-8b: gateway -> llama-8b worker, TCP 8000",
    ),
    "clients": Case(
        PLAIN, "gateway", lambda spec: spec["ingress"][0]["from"][0]["namespaceSelector"]["matchLabels"].update(a="b"),
        "gateway gateway: apps -> gateway, TCP 8080",
    ),
    "dns": Case(
        PLAIN, "gateway", lambda spec: spec["egress"][0]["ports"].pop(0),
        "gateway gateway: gateway -> kube-system with k8s-app=kube-dns, UDP 53",
    ),
    "dns, of a tenant": Case(
        TENANTS, "research-dns", None,
        "tenant research: a pod without labels in research -> kube-system with k8s-app=kube-dns, TCP 53",
    ),
}  # fmt: skip
"""By the flow that the edit denies."""


@pytest.mark.parametrize("name", TOO_MUCH)
def test_comparison_reports_connections_that_are_not_listed(name: str) -> None:
    case = TOO_MUCH[name]
    assert f"open, but no flow says so: {case.message}" in find_differences_after(
        fleet_world(case.fleet), case.policy, case.edit
    )


@pytest.mark.parametrize("name", TOO_LITTLE)
def test_comparison_reports_listed_flows_that_are_denied(name: str) -> None:
    case, flow = TOO_LITTLE[name], name.split(",")[0]
    assert f"closed, but open by flow `{flow}` of {case.message}" in find_differences_after(
        fleet_world(case.fleet), case.policy, case.edit
    )


def test_comparison_of_a_single_release_ignores_policies_of_the_other_end() -> None:
    """The gateway's egress allows port 8000 only, which hides an ingress of workers on another port."""

    def too_much(spec: Object) -> None:
        spec["ingress"][0]["ports"].append({"port": 10001, "protocol": "TCP"})

    message = "open, but no flow says so: gateway with rayhelm.dev/gateway=gateway -> llama-8b worker, TCP 10001"
    assert find_differences_after(fleet_world(PLAIN), "llama-8b-worker", too_much) == []
    release = RELEASES["single-gpu: ray-service/llama-8b.yaml"]
    assert message in find_differences_after(render_alone(release), "llama-8b-worker", too_much)


def find_differences_after(world: World, policy: str, edit: Edit | None) -> list[str]:
    """Find the differences after an edit of one policy, or without that policy."""
    policies = [copy.deepcopy(item) for item in world.policies]
    (found,) = (item for item in policies if item["metadata"]["name"] == policy)
    if edit:
        edit(found["spec"])
    else:
        policies.remove(found)
    assert policies != list(world.policies)
    return find_differences(replace(world, policies=tuple(policies)))
