"""It moves: load on the real HAProxy, and numbers of a service, raise and lower pods, by way of a real Prometheus, the
Prometheus adapter behind the API server, and Kubernetes' own HPA controller."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import gateway.kit as gateway_kit
from charts.kit import example, over
from cluster.kit.cluster import Cluster, Object
from cluster.kit.helm import Helm
from cluster.kit.metrics import Adapter, Exposition, Prometheus, adapter, exposition, prometheus
from cluster.kit.place import Testbed
from cluster.kit.wait import PATIENCE, eventually
from rayhelm.facts.metrics import load_metrics
from rayhelm.facts.scaling import load_scaling_rules
from rayhelm.processes import find_free_port
from testbed.nodes import cpu_nodes

SCRAPE = (Path(__file__).parents[1] / "scaling/scrapes/ray-service.prom").read_text()
RELEASE = "platform"
IN_FLIGHT = 5
"""Requests for each pod of the gateway that its HPA aims at."""
QUEUED = 4
"""Requests in a service's queue for each pod of the workload that scales with it."""
WAITS = {"patience": 2 * PATIENCE}
"""Clients of a load wait for as long as the test does."""
OWN = {"rayhelm_preemptions": {"series": ["ray_vllm_num_preemptions_total"], "aggregate": "Rate"}}


# -- what the service exports ----------------------------------------------------------------------------------------


def without(*availability: str) -> str:
    """The scrape of a live service, without what is there only at times."""
    gone = [name for name, metric in load_metrics().items() if metric.availability in availability]
    named = "|".join(map(re.escape, gone))
    those = re.compile(rf"(# TYPE )?({named})(_bucket|_sum|_count)?[ {{]")
    return "".join(line for line in SCRAPE.splitlines(keepends=True) if not those.match(line))


FRESH = without("first", "idle", "once")
IDLE = without("idle", "once")


def busy(waiting: int, usage: float = 0.5) -> str:
    """The scrape with so many requests in the queue of its engine, and so much of its KV cache in use."""
    text = SCRAPE
    for name, value in (("num_requests_waiting", waiting), ("kv_cache_usage_perc", usage)):
        text, found = re.subn(rf"^(ray_vllm_{name}\{{.*\}}) \S+$", rf"\1 {value}", text, flags=re.MULTILINE)
        assert found
    return text


# -- the world -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    cluster: Cluster
    gateways: str
    """Namespace of the gateway."""
    services: str
    """Namespace of the service `chat`, and of the workload `edge` that scales with it."""
    proxies: list[gateway_kit.GatewayProcess]
    """The HAProxy behind each of the gateway's first two pods."""
    upstream: gateway_kit.Upstream
    system: str
    """Namespace of the release of the chart platform, which enforces Pod Security `restricted`."""
    chat: Exposition
    prometheus: Prometheus
    adapter: Adapter

    def replicas(self, name: str, namespace: str) -> int:
        """Desired, and ready."""
        found = self.cluster.one("Deployment", name, namespace)
        wanted = int(found["spec"]["replicas"])
        return wanted if found["status"].get("readyReplicas", 0) == wanted else -1

    def becomes(self, name: str, namespace: str, replicas: int) -> None:
        eventually(
            lambda: self.replicas(name, namespace) == replicas,
            f"{name} having {replicas} pods",
            shows=lambda: self.cluster.kubectl("describe", "hpa,replicaset", f"--namespace={namespace}"),
        )

    def number(self, name: str) -> list[float]:
        return self.adapter.of_service(name, self.services, "chat")

    def number_becomes(self, name: str, value: float) -> None:
        eventually(
            lambda: self.number(name) == [pytest.approx(value, abs=0.001)],
            f"{name} being {value}",
            shows=lambda: self.number(name),
        )


@pytest.fixture(scope="module")
def world(cluster: Cluster, place: Testbed) -> Iterator[World]:
    place.must_be_whole()
    helm = Helm.of_major("4", place.kubeconfig)
    with ExitStack() as stack:
        stack.enter_context(cluster.machines(cpu_nodes(2)))
        gateways, services, system = (stack.enter_context(cluster.namespace()) for _ in range(3))
        (upstream,) = stack.enter_context(gateway_kit.start_upstreams("upstream"))
        values = gateway_kit.minimal_values(upstream)
        proxies = [stack.enter_context(gateway_kit.start_gateway(values)) for _ in range(2)]
        chat = stack.enter_context(exposition())
        chat.text = FRESH

        helm.install("gateway", "gateway", gateways, over(example("gateway/minimal"), SCALED))
        cluster.apply(metrics_pod(), deployment("edge"), namespace=services)
        pods = eventually(lambda: names(cluster, gateways, 2), "two pods of the gateway")
        ports = {"chat-head": chat.port} | dict(zip(pods, (proxy.metrics_port for proxy in proxies), strict=True))

        taken: set[int] = set()
        port = find_free_port(taken)
        values = platform(gateways, services, f"http://127.0.0.1:{port}", find_free_port(taken))
        helm.install("platform", RELEASE, system, values, "--take-ownership")
        stack.callback(helm.uninstall, RELEASE, system)
        config = cluster.one("ConfigMap", f"{RELEASE}-scrape", system)["data"]["rayhelm.yaml"]
        server = stack.enter_context(prometheus(cluster, port, config, ports))
        served = stack.enter_context(adapter(cluster, system, RELEASE))
        yield World(cluster, gateways, services, proxies, upstream, system, chat, server, served)


SCALED = {
    "autoscaling": {
        "minReplicas": 2,
        "maxReplicas": 6,
        "targetRequestsInFlight": IN_FLIGHT,
        "targetCpuPercent": 0,  # no metrics server here
        "scaleDownSeconds": 2,
    }
}


def platform(gateways: str, services: str, url: str, port: int) -> Object:
    edge = {
        "target": {"name": "edge"},
        "service": "chat",
        "metric": "rayhelm_queue_length",
        "averageValue": QUEUED,
        "maxReplicas": 5,
        "scaleDownSeconds": 2,
    }
    return {
        "metrics": {
            "services": {"chat": {"namespace": services}},
            "gateways": {"gateway": {"namespace": gateways}},
            "prometheusUrl": url,
            "scraping": {"kind": "ConfigMap"},
            "windowSeconds": 60,
            "rules": OWN,
            "adapter": {
                "kind": "Managed",
                "port": port,
                "relistSeconds": 10,
                "tls": {"skipVerifyReason": "it listens on loopback"},
            },
            "autoscalers": {"edge": edge},
        },
        "networkPolicy": {"apiServer": {"cidrs": ["127.0.0.1/32"]}},
    }


def names(cluster: Cluster, namespace: str, count: int) -> list[str]:
    """Of the gateway's pods, once there are so many, all with an address."""
    pods = cluster.all("Pod", namespace, {"rayhelm.dev/gateway": "gateway"})
    return sorted(pod["metadata"]["name"] for pod in pods) if len(pods) == count else []


CONTAINER = {
    "name": "ray",
    "image": "rayproject/ray-llm:2.60.0-py312-cu130",
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "seccompProfile": {"type": "RuntimeDefault"},
    },
}


def metrics_pod() -> Object:
    """What the chart ray-service and KubeRay would make of a head, as far as scraping goes."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "chat-head", "labels": {"rayhelm.dev/service": "chat"}},
        "spec": {"containers": [{**CONTAINER, "ports": [{"name": "metrics", "containerPort": 8080}]}]},
    }


def deployment(name: str) -> Object:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}},
        },
    }


# -- numbers ---------------------------------------------------------------------------------------------------------

OF_SERVICES = [*(name for name in load_scaling_rules().rules if name.startswith("rayhelm_")), *OWN]


def test_every_rule_is_listed(world: World) -> None:
    eventually(lambda: set(OF_SERVICES) == world.adapter.lists("External"), "the rules of services being listed")
    eventually(lambda: "haproxy_requests_in_flight" in world.adapter.lists("Pods"), "the gateway's rule being listed")


@pytest.mark.parametrize("name", OF_SERVICES)
def test_before_its_first_request_a_service_has_each_number(world: World, name: str) -> None:
    world.chat.text = FRESH
    world.number_becomes(name, 0)


def test_time_to_first_token_includes_the_first_requests_of_a_series(world: World) -> None:
    """The recorded buckets never grow: all samples were in the first scrape of the series."""
    world.chat.text = FRESH
    world.number_becomes("rayhelm_ttft_seconds", 0)
    buckets = "present_over_time(ray_vllm_time_to_first_token_seconds_bucket[1m])"
    eventually(lambda: not world.prometheus.asks(buckets), "a minute without any")
    world.chat.text = SCRAPE
    eventually(lambda: world.number("rayhelm_ttft_seconds") > [0], "a time to the first token")


def test_under_load_the_numbers_are_those_of_the_engines(world: World) -> None:
    world.chat.text = busy(7, 0.75)
    world.number_becomes("rayhelm_queue_length", 7)
    world.number_becomes("rayhelm_kv_cache_usage", 0.75)


def test_idle_service_keeps_its_numbers(world: World) -> None:
    world.chat.text = busy(7)
    world.number_becomes("rayhelm_queue_length", 7)
    world.chat.text = IDLE
    for name in ("rayhelm_queue_length", "rayhelm_kv_cache_usage"):
        world.number_becomes(name, 0)
    assert not world.prometheus.asks("ray_vllm_num_requests_waiting")


def test_service_is_seen_from_its_own_namespace_alone(world: World) -> None:
    world.chat.text = FRESH
    world.number_becomes("rayhelm_queue_length", 0)
    assert world.adapter.of_service("rayhelm_queue_length", world.gateways, "chat") == []


def test_account_of_the_adapter_has_the_rights_that_it_needs(world: World) -> None:
    assert eventually(lambda: world.adapter.of_pods("haproxy_requests_in_flight", world.gateways), "numbers of pods")
    assert "forbidden" not in world.adapter.said


def test_pods_of_the_adapter_are_admitted_and_ready(world: World) -> None:
    world.becomes(f"{RELEASE}-metrics", world.system, 2)


# -- pods ------------------------------------------------------------------------------------------------------------


@contextmanager
def load(world: World, each: int) -> Iterator[None]:
    """So many requests in flight at each HAProxy."""
    gate = world.upstream.gate()

    async def wait(request: gateway_kit.ReceivedRequest, reply: gateway_kit.Reply) -> None:
        await gate.wait()
        await world.upstream.echo(request, reply)

    world.upstream.respond, usual = wait, world.upstream.respond
    clients = [
        threading.Thread(target=proxy.chat, kwargs=WAITS, daemon=True) for proxy in world.proxies for _ in range(each)
    ]
    for client in clients:
        client.start()
    try:
        yield
    finally:
        gate.open()
        for client in clients:
            client.join(300)
        world.upstream.respond = usual


def test_requests_in_flight_raise_and_lower_the_pods_of_the_gateway(world: World) -> None:
    world.becomes("gateway", world.gateways, 2)
    with load(world, 10):
        eventually(
            lambda: sorted(world.adapter.of_pods("haproxy_requests_in_flight", world.gateways).values()) == [10, 10],
            "ten requests in flight at each pod",
            shows=lambda: world.adapter.of_pods("haproxy_requests_in_flight", world.gateways),
        )
        world.becomes("gateway", world.gateways, 2 * 10 // IN_FLIGHT)
    world.becomes("gateway", world.gateways, 2)


def test_queue_of_a_service_raises_and_lowers_the_pods_that_scale_with_it(world: World) -> None:
    world.chat.text = FRESH
    world.becomes("edge", world.services, 1)
    world.chat.text = busy(3 * QUEUED)
    world.becomes("edge", world.services, 3)
    world.chat.text = IDLE
    world.becomes("edge", world.services, 1)


def test_exactly_the_kinds_that_an_autoscaler_may_name_have_a_scale_subresource(cluster: Cluster) -> None:
    def scaled(version: str) -> set[str]:
        found = json.loads(cluster.kubectl("get", "--raw", f"/apis/{version}"))["resources"]
        kinds = {item["name"]: item["kind"] for item in found if "/" not in item["name"]}
        return {kinds[item["name"].removesuffix("/scale")] for item in found if item["name"].endswith("/scale")}

    served = scaled("apps/v1") | scaled("batch/v1") | scaled("ray.io/v1")
    assert set(load_scaling_rules().scalable) <= served
    assert not set(load_scaling_rules().unscalable) & served
