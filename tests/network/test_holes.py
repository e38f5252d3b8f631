"""A policy that lets through too much or too little is found, and the words say which flow it is about."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest

from charts.kit import Object
from network.kit.compare import differences
from network.kit.releases import RELEASES, Fleet, alone, fleet_world
from network.kit.world import World

PLAIN = Fleet("single-gpu", "main")
"""Without tenants: nothing but the releases' own policies closes anything."""
TENANTS = Fleet("multi-node", "main")
EVERYBODY: Object = {"namespaceSelector": {}}

Edit = Callable[[Object], object]


class Hole(NamedTuple):
    """An edit of a policy's spec, None for one that is not there, and what has to be said then."""

    fleet: Fleet
    policy: str
    edit: Edit | None
    said: str


TOO_MUCH = {
    "no denial": Hole(
        PLAIN, "llama-8b-default-deny", None,
        "a pod without labels in elsewhere -> llama-8b test, every",
    ),
    "no denial of a tenant's": Hole(
        TENANTS, "research-default-deny", None,
        "a pod without labels in elsewhere -> a pod without labels in research, every",
    ),
    "a denial of some pods": Hole(
        TENANTS, "research-default-deny", lambda spec: spec["podSelector"].update(matchLabels={"app": "web"}),
        "a pod without labels in elsewhere -> a pod without labels in research, every",
    ),
    "every namespace": Hole(
        PLAIN, "llama-8b-worker", lambda spec: spec["ingress"][0]["from"].append(EVERYBODY),
        "a pod without labels in elsewhere -> llama-8b worker, TCP 8000",
    ),
    "every namespace, for pods with the labels": Hole(
        PLAIN, "llama-8b-worker", lambda spec: spec["ingress"][0]["from"][0].update(EVERYBODY),
        "a pod in elsewhere with rayhelm.dev/gateway=gateway -> llama-8b worker, TCP 8000",
    ),
    "every pod of a namespace": Hole(
        PLAIN, "llama-8b-worker", lambda spec: spec["ingress"][0]["from"][0].pop("podSelector"),
        "a pod without labels in gateway -> llama-8b worker, TCP 8000",
    ),
    "an empty list of peers": Hole(
        PLAIN, "llama-8b-worker", lambda spec: spec["ingress"][0]["from"].clear(),
        "0.0.0.0-255.255.255.255 -> llama-8b worker, TCP 8000",
    ),
    "no peers": Hole(
        PLAIN, "llama-8b-head", lambda spec: spec.update(ingress=[{}]),
        "0.0.0.0-255.255.255.255 -> llama-8b head, every",
    ),
    "one port more": Hole(
        PLAIN, "llama-8b-head", lambda spec: spec["ingress"][0]["ports"].append({"port": 10001, "protocol": "TCP"}),
        "kuberay-system -> llama-8b head, TCP 10001",
    ),
    "a range of ports": Hole(
        PLAIN, "llama-8b-head", lambda spec: spec["ingress"][0]["ports"][0].update(endPort=8270),
        "kuberay-system -> llama-8b head, TCP 8265-8270",
    ),
    "every port": Hole(
        PLAIN, "llama-8b-head", lambda spec: spec["ingress"][0].pop("ports"),
        "kuberay-system -> llama-8b head, every",
    ),
    "every port of the DNS": Hole(
        TENANTS, "research-dns", lambda spec: spec["egress"][0].pop("ports"),
        "llama-405b head -> kube-system with k8s-app=kube-dns, every",
    ),
    "the gateway's metrics": Hole(
        PLAIN, "gateway", lambda spec: spec["ingress"][0]["ports"].append({"port": 8404, "protocol": "TCP"}),
        "apps -> gateway, TCP 8404",
    ),
    "a block of addresses more": Hole(
        PLAIN, "llama-8b-head", lambda spec: spec["egress"].append({"to": [{"ipBlock": {"cidr": "10.9.0.0/16"}}]}),
        "llama-8b head -> 10.9.0.0-10.9.255.255, every",
    ),
    "a wider selector": Hole(
        PLAIN, "llama-8b-head", lambda spec: spec["podSelector"]["matchExpressions"].pop(0),
        "llama-8b download -> 10.0.0.1-10.0.0.1, TCP 6443",
    ),
    "what another value would open": Hole(
        PLAIN, "llama-8b-download", lambda spec: spec["podSelector"]["matchExpressions"][0]["values"].append("worker"),
        "llama-8b worker -> 0.0.0.0-255.255.255.255, TCP 443"
        " (flow `online` of ray-service llama-8b is for weights.offline: false)",
    ),
    "the pod that empties Redis as a head": Hole(
        PLAIN, "llama-8b-cluster", lambda spec: spec["podSelector"]["matchExpressions"].pop(),
        "llama-8b redis-cleanup -> kube-system with k8s-app=kube-dns, TCP 53"
        " (flow `redis-cleanup-dns` of ray-service llama-8b is for gcsFaultTolerance.enabled: true)",
    ),
}  # fmt: skip

TOO_LITTLE = {
    "serve": Hole(PLAIN, "llama-8b-worker", None, "ray-service llama-8b: gateway -> llama-8b worker, TCP 8000"),
    "operator": Hole(PLAIN, "llama-8b-head", None, "ray-service llama-8b: kuberay-system -> llama-8b head, TCP 8265"),
    "inside": Hole(PLAIN, "llama-8b-cluster", None, "ray-service llama-8b: llama-8b head -> llama-8b worker, every"),
    "test": Hole(PLAIN, "llama-8b-test", None, "ray-service llama-8b: llama-8b test -> llama-8b worker, TCP 8000"),
    "weights": Hole(
        PLAIN, "llama-8b-download", lambda spec: spec["egress"][1]["to"][0]["ipBlock"].update(cidr="0.0.0.0/1"),
        "ray-service llama-8b: llama-8b download -> 0.0.0.0-255.255.255.255, TCP 443",
    ),
    "redis-cleanup": Hole(
        TENANTS, "llama-70b-redis-cleanup", None,
        "ray-service llama-70b: llama-70b redis-cleanup -> ray-state, TCP 6379",
    ),
    "autoscaler": Hole(
        PLAIN, "llama-8b-head", lambda spec: spec["egress"].clear(),
        "ray-service llama-8b: llama-8b head -> 10.0.0.1-10.0.0.1, TCP 6443",
    ),
    "serve, by the gateway": Hole(
        PLAIN, "gateway", lambda spec: spec["egress"].pop(),
        "ray-service llama-8b: gateway -> llama-8b worker, TCP 8000",
    ),
    "clients": Hole(
        PLAIN, "gateway", lambda spec: spec["ingress"][0]["from"][0]["namespaceSelector"]["matchLabels"].update(a="b"),
        "gateway gateway: apps -> gateway, TCP 8080",
    ),
    "dns": Hole(
        PLAIN, "gateway", lambda spec: spec["egress"][0]["ports"].pop(0),
        "gateway gateway: gateway -> kube-system with k8s-app=kube-dns, UDP 53",
    ),
    "dns, of a tenant": Hole(
        TENANTS, "research-dns", None,
        "tenant research: a pod without labels in research -> kube-system with k8s-app=kube-dns, TCP 53",
    ),
}  # fmt: skip
"""By the flow that is closed."""


@pytest.mark.parametrize("name", TOO_MUCH)
def test_comparison_reports_connections_that_are_not_listed(name: str) -> None:
    hole = TOO_MUCH[name]
    assert f"open, but no flow says so: {hole.said}" in spoiled(fleet_world(hole.fleet), hole.policy, hole.edit)


@pytest.mark.parametrize("name", TOO_LITTLE)
def test_comparison_reports_listed_flows_that_are_denied(name: str) -> None:
    hole, flow = TOO_LITTLE[name], name.split(",")[0]
    assert f"closed, but open by flow `{flow}` of {hole.said}" in spoiled(
        fleet_world(hole.fleet), hole.policy, hole.edit
    )


def test_comparison_of_a_single_release_ignores_policies_of_the_other_end() -> None:
    """The gateway goes out to port 8000 only, so that workers let it in to another one shows nowhere else."""

    def too_much(spec: Object) -> None:
        spec["ingress"][0]["ports"].append({"port": 10001, "protocol": "TCP"})

    said = "open, but no flow says so: gateway with rayhelm.dev/gateway=gateway -> llama-8b worker, TCP 10001"
    assert spoiled(fleet_world(PLAIN), "llama-8b-worker", too_much) == []
    release = RELEASES["single-gpu: ray-service/llama-8b.yaml"]
    assert said in spoiled(alone(release), "llama-8b-worker", too_much)


def spoiled(world: World, policy: str, edit: Edit | None) -> list[str]:
    """What is said after an edit of one policy, or without it."""
    policies = [copy.deepcopy(item) for item in world.policies]
    (found,) = (item for item in policies if item["metadata"]["name"] == policy)
    if edit:
        edit(found["spec"])
    else:
        policies.remove(found)
    assert policies != list(world.policies)
    return differences(replace(world, policies=tuple(policies)))
