"""KServe-named aliases in the namespace of their clients: where they lead, and who may connect."""

from collections.abc import Iterator

import pytest

from charts.kit import example, over
from cluster.kit.cluster import Cluster, Object
from cluster.kit.helm import Helm
from cluster.kit.wait import eventually
from testbed.nodes import cpu_nodes


@pytest.fixture(scope="module", autouse=True)
def _machines(cluster: Cluster) -> Iterator[None]:
    with cluster.machines(cpu_nodes(2)):
        yield


@pytest.fixture
def clients(cluster: Cluster) -> Iterator[str]:
    """Namespace of clients that use the aliases."""
    with cluster.namespace() as name:
        yield name


@pytest.fixture
def service(cluster: Cluster, namespace: str, clients: str, helm: Helm) -> str:
    """Namespace of a service with two aliases."""
    values: Object = {
        "kuberay": {"version": cluster.place.kuberay},
        "aliases": {name: {"namespace": clients} for name in ("llm-predictor", "chat-predictor")},
        "networkPolicy": {"allowedGateways": {"clients": {"namespace": clients, "podLabels": {"app": "client"}}}},
    }
    helm.install("ray-service", "chat", namespace, dict(over(example("stand-in"), values)))
    cluster.becomes_ready("chat", namespace)
    return namespace


def test_alias_leads_to_the_workers_that_serve(cluster: Cluster, service: str, clients: str) -> None:
    for name in ("llm-predictor", "chat-predictor"):
        spec = cluster.one("Service", name, clients)["spec"]
        assert spec["type"] == "ExternalName"
        target, namespace, kind, domain = spec["externalName"].split(".", 3)
        assert (namespace, kind, domain) == (service, "svc", "cluster.local")
        found = cluster.one("Service", target, namespace)["spec"]
        assert 8000 in [port["port"] for port in found["ports"]], "an ExternalName maps no ports: clients name this one"
        workers = {pod["status"]["podIP"] for pod in cluster.all("Pod", service, {"ray.io/node-type": "worker"})}
        eventually(
            lambda target=target, workers=workers: list_ready_addresses(cluster, target, service) == workers != set(),
            f"the endpoints of {target} being the workers",
        )


def test_network_policy_of_workers_lets_in_exactly_the_clients(cluster: Cluster, service: str, clients: str) -> None:
    found = [
        peer
        for policy in cluster.all("NetworkPolicy", service)
        if is_worker_policy(policy)
        for rule in policy["spec"].get("ingress", [])
        if any(port.get("port") == 8000 for port in rule.get("ports", [{"port": 8000}]))
        for peer in rule.get("from", [{}])
    ]
    others = [peer for peer in found if "namespaceSelector" in peer]
    assert others == [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": clients}},
            "podSelector": {"matchLabels": {"app": "client"}},
        }
    ]
    assert {} not in found, "a rule without a peer lets in every pod"


def test_aliases_go_with_the_release(cluster: Cluster, service: str, clients: str, helm: Helm) -> None:
    helm.uninstall("chat", service)
    assert not [item for item in cluster.all("Service", clients) if item["metadata"]["name"].endswith("-predictor")]


def is_worker_policy(policy: Object) -> bool:
    selector = policy["spec"]["podSelector"]
    labels = selector.get("matchLabels", {})
    expressions = selector.get("matchExpressions", [])
    return labels.get("rayhelm.dev/role") == "worker" or any(
        each["key"] == "rayhelm.dev/role" and "worker" in each.get("values", []) for each in expressions
    )


def list_ready_addresses(cluster: Cluster, service: str, namespace: str) -> set[str]:
    slices = cluster.all("EndpointSlice", namespace, {"kubernetes.io/service-name": service})
    return {
        address
        for item in slices
        for endpoint in item.get("endpoints") or []
        if endpoint["conditions"].get("ready")
        for address in endpoint["addresses"]
    }
