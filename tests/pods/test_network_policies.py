"""Network policies, proven with packets: what they deny is not reached, and what they allow is."""

from typing import Any

import httpx
import pytest

from pods.kit.cluster import PATIENCE, Cluster
from rayhelm.processes import wait_until


def policy(namespace: str, name: str, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": meta, "spec": spec}


@pytest.fixture
def server(cluster: Cluster, namespace: str) -> str:
    """A server that a friend and a stranger reach; its address."""
    address = cluster.serve(namespace, "server")
    cluster.start(namespace, "friend", "pause", role="friend")
    cluster.start(namespace, "stranger", "pause", role="stranger")
    for client in ("friend", "stranger"):
        cluster.until(namespace, client, f"{address}:8080", open=True)
    return address


def test_default_deny_blocks_ingress_and_an_allow_rule_opens_it(cluster: Cluster, namespace: str, server: str) -> None:
    cluster.apply(policy(namespace, "default-deny", podSelector={}, policyTypes=["Ingress"]))
    for target in (f"{server}:8080", f"server.{namespace}.svc.cluster.local:80"):
        for client in ("friend", "stranger"):
            cluster.until(namespace, client, target, open=False)

    friends = {"from": [{"podSelector": {"matchLabels": {"role": "friend"}}}], "ports": [{"port": 8080}]}
    opened = policy(namespace, "friends", podSelector={"matchLabels": {"app": "server"}}, ingress=[friends])
    cluster.apply(opened)
    for target in (f"{server}:8080", f"server.{namespace}.svc.cluster.local:80"):
        cluster.until(namespace, "friend", target, open=True)
    assert not cluster.connects(namespace, "stranger", f"{server}:8080")


def test_default_deny_blocks_egress_and_dns(cluster: Cluster, namespace: str, server: str) -> None:
    cluster.apply(policy(namespace, "default-deny", podSelector={}, policyTypes=["Egress"]))
    for target in (f"{server}:8080", "kubernetes.default.svc:443", f"{cluster.node.network.node}:6443"):
        cluster.until(namespace, "friend", target, open=False)

    names = {
        "to": [{"namespaceSelector": {}, "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}}],
        "ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}],
    }
    to_server = {"to": [{"podSelector": {"matchLabels": {"app": "server"}}}]}
    cluster.apply(policy(namespace, "opened", podSelector={}, policyTypes=["Egress"], egress=[names, to_server]))
    cluster.until(namespace, "friend", f"server.{namespace}.svc.cluster.local:80", open=True)
    assert not cluster.connects(namespace, "friend", f"{cluster.node.network.node}:6443")


def test_this_computer_is_a_stranger_too_and_probes_of_the_kubelet_are_none(
    cluster: Cluster, namespace: str, server: str
) -> None:
    def answered() -> bool:
        try:
            return httpx.get(f"http://{server}:8080/hostname", timeout=2, trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    wait_until(lambda: answered() or None, what="an answer to this computer", timeout=PATIENCE)
    cluster.apply(policy(namespace, "default-deny", podSelector={}, policyTypes=["Ingress"]))
    wait_until(lambda: not answered() or None, what="denied to this computer", timeout=PATIENCE)
    ours = {"from": [{"ipBlock": {"cidr": f"{cluster.node.network.host}/32"}}]}
    cluster.apply(policy(namespace, "ours", podSelector={}, policyTypes=["Ingress"], ingress=[ours]))
    wait_until(lambda: answered() or None, what="allowed to this computer", timeout=PATIENCE)
    assert cluster.get(namespace, "pod", "server")["status"]["containerStatuses"][0]["ready"]
