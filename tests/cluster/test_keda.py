"""KEDA scales the gateway: load on the real HAProxy, a real Prometheus that scrapes it, operator and metrics server of
KEDA, and the HPA controller of Kubernetes. `make verify-keda` builds KEDA and runs this."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest

import gateway.kit as gateway_kit
from charts.kit import example, over
from cluster.kit.cluster import Cluster, Object, condition
from cluster.kit.helm import Helm
from cluster.kit.keda import PROGRAMS, Keda, keda
from cluster.kit.metrics import Prometheus, prometheus
from cluster.kit.place import Testbed
from cluster.kit.wait import PATIENCE, eventually
from rayhelm.errors import MissingError
from rayhelm.processes import find_free_port
from testbed.nodes import cpu_nodes
from testbed.tools import program

IN_FLIGHT = 5
"""Requests in flight for each pod that the ScaledObject aims at."""
PODS = 2
"""Pods without load."""
WAITS = {"patience": 2 * PATIENCE}
"""Clients of a load wait for as long as the test does."""


@dataclass(frozen=True)
class World:
    cluster: Cluster
    namespace: str
    proxies: list[gateway_kit.GatewayProcess]
    upstream: gateway_kit.Upstream
    prometheus: Prometheus
    keda: Keda

    def scaler(self) -> Object:
        return self.cluster.one("ScaledObject", "gateway", self.namespace)

    def pods(self) -> int:
        """Desired pods of the gateway, if all are ready; else -1."""
        found = self.cluster.one("Deployment", "gateway", self.namespace)
        wanted = int(found["spec"]["replicas"])
        return wanted if found["status"].get("readyReplicas", 0) == wanted else -1

    def events(self) -> str:
        return self.cluster.kubectl("describe", "hpa", f"--namespace={self.namespace}")

    def becomes(self, pods: int) -> None:
        eventually(
            lambda: self.pods() == pods,
            f"the gateway having {pods} pods",
            shows=lambda: (
                self.cluster.kubectl("describe", "hpa,scaledobject", f"--namespace={self.namespace}") + self.keda.said
            ),
        )

    @contextmanager
    def load(self, each: int) -> Iterator[None]:
        """So many requests in flight at each HAProxy."""
        gate, usual = self.upstream.gate(), self.upstream.respond

        async def wait(request: gateway_kit.ReceivedRequest, reply: gateway_kit.Reply) -> None:
            await gate.wait()
            await self.upstream.echo(request, reply)

        self.upstream.respond = wait
        clients = [
            threading.Thread(target=proxy.chat, kwargs=WAITS, daemon=True)
            for proxy in self.proxies
            for _ in range(each)
        ]
        for client in clients:
            client.start()
        try:
            yield
        finally:
            gate.open()
            for client in clients:
                client.join(300)
            self.upstream.respond = usual


@pytest.fixture(scope="module")
def world(cluster: Cluster, place: Testbed) -> Iterator[World]:
    try:
        for name in PROGRAMS:
            program(name)
    except MissingError:
        pytest.skip("KEDA is not built: make verify-keda")
    place.must_be_whole()
    helm, port = Helm.of_major("4", place.kubeconfig), find_free_port(set())
    with ExitStack() as stack:
        stack.enter_context(cluster.machines(cpu_nodes(2)))
        namespace, system = (stack.enter_context(cluster.namespace()) for _ in range(2))
        (upstream,) = stack.enter_context(gateway_kit.start_upstreams("upstream"))
        values = gateway_kit.minimal_values(upstream)
        proxies = [stack.enter_context(gateway_kit.start_gateway(values)) for _ in range(PODS)]
        runs = stack.enter_context(keda(cluster, system))
        helm.install("gateway", "gateway", namespace, over(example("gateway/minimal"), scaled(port)))
        pods = eventually(lambda: names(cluster, namespace), "two pods of the gateway", shows=lambda: runs.said)
        targets = {"gateways": {"gateway": {"namespace": namespace}}, "scraping": {"kind": "ConfigMap"}}
        helm.install("platform", "platform", system, {"metrics": targets}, "--take-ownership")
        stack.callback(helm.uninstall, "platform", system)
        config = cluster.one("ConfigMap", "platform-scrape", system)["data"]["rayhelm.yaml"]
        ports = dict(zip(pods, (proxy.metrics_port for proxy in proxies), strict=True))
        server = stack.enter_context(prometheus(cluster, port, config, ports))
        yield World(cluster, namespace, proxies, upstream, server, runs)


def scaled(port: int) -> Object:
    return {
        "autoscaling": {
            **{"kind": "KEDA", "minReplicas": PODS, "maxReplicas": 6, "targetRequestsInFlight": IN_FLIGHT},
            "scaleDownSeconds": 2,
            "keda": {"serverAddress": f"http://127.0.0.1:{port}"},
        }
    }


def names(cluster: Cluster, namespace: str) -> list[str]:
    pods = cluster.all("Pod", namespace, {"rayhelm.dev/gateway": "gateway"})
    return sorted(pod["metadata"]["name"] for pod in pods) if len(pods) == PODS else []


def test_keda_accepts_the_scaled_object_of_the_chart(world: World) -> None:
    eventually(
        lambda: condition(world.scaler(), "Ready") == "True",
        "the ScaledObject being Ready",
        shows=lambda: (world.scaler().get("status"), world.keda.said),
    )
    (hpa,) = world.cluster.all("HorizontalPodAutoscaler", world.namespace)
    assert hpa["spec"]["scaleTargetRef"]["name"] == "gateway"
    assert (hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"]) == (PODS, 6)


def test_requests_in_flight_raise_and_lower_the_pods_of_the_gateway(world: World) -> None:
    world.becomes(PODS)
    with world.load(10):
        world.becomes(PODS * 10 // IN_FLIGHT)
    world.becomes(PODS)


def test_missing_series_keep_the_pods(world: World) -> None:
    """`ignoreNullValues: "false"`: a query without data is an error, and the HPA does nothing."""
    world.becomes(PODS)
    with world.load(10):
        world.becomes(PODS * 10 // IN_FLIGHT)
        (trigger,) = world.scaler()["spec"]["triggers"]
        metadata = {**trigger["metadata"], "query": trigger["metadata"]["query"].replace("haproxy_", "absent_")}
        world.cluster.patch(
            *("scaledobject", "gateway", world.namespace), {"spec": {"triggers": [{**trigger, "metadata": metadata}]}}
        )
        eventually(
            lambda: (
                "FailedGetExternalMetric" in world.cluster.kubectl("describe", "hpa", f"--namespace={world.namespace}")
            ),
            "the HPA without a metric",
        )
        assert world.pods() == PODS * 10 // IN_FLIGHT
