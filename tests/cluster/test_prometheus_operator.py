"""Each way of scraping, on real pods of the charts: the Prometheus Operator makes a configuration of the objects, and a
real Prometheus finds the targets with it."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from charts.kit import example, over
from cluster.kit.cluster import Cluster, Object
from cluster.kit.helm import Helm
from cluster.kit.metrics import Prometheus, exposition, prometheus
from cluster.kit.place import Testbed
from cluster.kit.prometheus_operator import SELECTED, Operator, operator
from cluster.kit.small import Small
from cluster.kit.wait import eventually
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.observe.queries import conditions
from rayhelm.observe.queries.scope import Scope
from rayhelm.processes import find_free_port

PLACE = Small("scraped")
PORTS = {"head": ("metrics", "as-metrics", "dash-metrics"), "worker": ("metrics",)}
GATEWAY_PATHS = ("/metrics", "/metrics/tenants")
COMMUNITY_CHART = Path(__file__).parent / "data/annotated-pods.yaml"
JOBS = {"PodMonitor": 7, "ScrapeConfig": 5}
"""A PodMonitor makes a job for each port and path, a ScrapeConfig one for each path."""
OF_PROMETHEUS = {"instance", "job"}

Target = frozenset[tuple[str, str]]
"""Labels of a target, and its path."""


@dataclass(frozen=True)
class World:
    cluster: Cluster
    helm: Helm
    operator: Operator
    gateways: str
    services: str
    system: str
    """Namespace of chart platform, of the KubeRay operator and of the exporter of GPUs."""
    installed: dict[str, Object] = field(default_factory=dict)
    """Values of each release, as they were installed last."""

    def install(self, kind: str, labels: dict[str, str] | None = None) -> None:
        """Install the three charts with one way of scraping."""
        selected = SELECTED if labels is None else labels
        own = {"kind": "None" if kind == "ConfigMap" else kind, "labels": selected}
        self.upgrade("gateway", "gateway", self.gateways, over(example("gateway/minimal"), {"scraping": own}))
        service = PLACE.values(self.cluster.place, {"tenant": "research", "scraping": own})
        self.upgrade("ray-service", "chat", self.services, service)
        self.upgrade("platform", "platform", self.system, self.platform(kind, selected))

    def upgrade(self, chart: str, release: str, namespace: str, values: Object) -> None:
        """Install or upgrade a release, unless it has these values."""
        if self.installed.get(release) != values:
            options = ["--take-ownership"] if chart == "platform" else []
            self.helm.install(chart, release, namespace, values, *options)
            self.installed[release] = values

    def platform(self, kind: str, labels: dict[str, str]) -> Object:
        return {
            "metrics": {
                "services": {"chat": {"namespace": self.services}},
                "gateways": {"gateway": {"namespace": self.gateways}},
                "scraping": {"kind": kind, "labels": labels, "kuberayNamespace": self.system},
            },
            "nvidia": {"enabled": True, "namespace": self.system},
            "policies": {"excludedNamespaces": {self.services: "its pods have no priority class"}},
            "prometheusRules": {
                "kind": "PrometheusRule",
                "labels": labels,
                "runbookUrl": "https://git.example.com/runbooks",
            },
        }

    def pods(self, namespace: str, **labels: str) -> list[Object]:
        found = self.cluster.all("Pod", namespace, {f"rayhelm.dev/{key}": value for key, value in labels.items()})
        return [pod for pod in found if pod["status"].get("podIP") and "deletionTimestamp" not in pod["metadata"]]

    def expected(self) -> set[Target]:
        """The targets of all pods that are there now."""
        targets = set()
        for role, ports in PORTS.items():
            for pod in self.pods(self.services, service="chat", role=role):
                targets |= {target(pod, port) for port in ports}
        for pod in self.pods(self.gateways, gateway="gateway"):
            targets |= {target(pod, "metrics", path) for path in GATEWAY_PATHS}
        for pod, port in (("kuberay-operator", "http"), ("nvidia-dcgm-exporter", "metrics")):
            targets.add(target(self.cluster.one("Pod", pod, self.system), port))
        return targets

    def is_complete(self) -> bool:
        """Whether each part has its pods: without them any configuration would do."""
        parts = [self.pods(self.services, service="chat", role=role) for role in PORTS]
        return all(parts) and len(self.pods(self.gateways, gateway="gateway")) == 2


def target(pod: Object, port: str, path: str = "/metrics") -> Target:
    about = pod["metadata"]
    (container,) = (
        item["name"]
        for item in pod["spec"]["containers"]
        if port in [each.get("name") for each in item.get("ports", [])]
    )
    labels = {"namespace": about["namespace"], "pod": about["name"], "container": container, "endpoint": port}
    copied = {key: value for key, value in about["labels"].items() if re.fullmatch(r"rayhelm\.dev/(?!role).*", key)}
    labels |= {re.sub(r"\W", "_", key): value for key, value in copied.items()}
    labels |= {"metrics_path": path} if path != "/metrics" else {}
    return frozenset({**labels, "__path": path}.items())


DCGM = "nvidia-dcgm-exporter"


def found_targets(server: Prometheus) -> list[Target]:
    found = []
    for each in server.targets():
        labels = {key: value for key, value in each["labels"].items() if key not in OF_PROMETHEUS}
        path = "/" + each["scrapeUrl"].partition("://")[2].partition("/")[2]
        found.append(frozenset({**labels, "__path": path}.items()))
    return found


def other_pod(name: str, labels: dict[str, str], port: str) -> Object:
    """A pod of an operator, as far as scraping goes."""
    security = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {"name": name, "image": f"example/{name}", "securityContext": security}
    container["ports"] = [{"name": port, "containerPort": 8080}]
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


@pytest.fixture(scope="module")
def world(cluster: Cluster, place: Testbed) -> Iterator[World]:
    place.must_be_whole()
    helm = Helm.of_major("4", place.kubeconfig)
    with ExitStack() as stack:
        stack.enter_context(cluster.machines(PLACE.machines()))
        gateways, services, system = (stack.enter_context(cluster.namespace()) for _ in range(3))
        exported = stack.enter_context(exposition())
        exported.text = "# TYPE answered gauge\nanswered 1\n"
        runs = stack.enter_context(operator(cluster, system, exported.port))
        found = World(cluster, helm, runs, gateways, services, system)
        cluster.apply(
            other_pod("kuberay-operator", {"app.kubernetes.io/name": "kuberay-operator"}, "http"),
            other_pod("nvidia-dcgm-exporter", {"app": "nvidia-dcgm-exporter"}, "metrics"),
            namespace=system,
        )
        found.install("PodMonitor")
        stack.callback(helm.uninstall, "platform", system)
        eventually(found.is_complete, "pods of service and gateway", shows=lambda: cluster.tell(services))
        yield found


@contextmanager
def scraping(world: World, kind: str) -> Iterator[Prometheus]:
    """A Prometheus that finds its targets in this way."""
    world.install(kind)
    if kind == "ConfigMap":
        config = world.cluster.one("ConfigMap", "platform-scrape", world.system)["data"]["rayhelm.yaml"]
        with prometheus(world.cluster, find_free_port(set()), config, {".+": world.operator.exported}) as server:
            yield server
    elif kind == "Annotations":
        ports = {".+": world.operator.exported}
        with prometheus(world.cluster, find_free_port(set()), COMMUNITY_CHART.read_text(), ports) as server:
            yield server
    else:
        of_kind = re.compile(f"{kind[0].lower()}{kind[1:]}/")
        eventually(
            lambda: len(jobs := world.operator.jobs()) == JOBS[kind] and all(map(of_kind.match, jobs)),
            f"a configuration of all {kind}s, and nothing else",
            shows=lambda: (world.operator.jobs(), world.operator.said[-3000:]),
        )
        with world.operator.prometheus() as server:
            yield server


@pytest.mark.parametrize("kind", ["PodMonitor", "ScrapeConfig", "ConfigMap"])
def test_targets_have_the_same_labels_in_each_way_of_scraping(world: World, kind: str) -> None:
    with scraping(world, kind) as server:
        eventually(
            lambda: sorted(map(sorted, found_targets(server))) == sorted(map(sorted, world.expected())),
            "each target once, with its labels",
            shows=lambda: {
                "missing": world.expected() - {*found_targets(server)},
                "wrong": {*found_targets(server)} - world.expected(),
            },
        )
        eventually(
            lambda: len(server.asks("answered")) == len(world.expected()),
            "samples of all targets",
            shows=server.targets,
        )


def test_annotated_pods_have_the_labels_that_queries_need(world: World) -> None:
    """The job `kubernetes-pods` of Prometheus' community chart. It copies all labels of a pod."""
    with scraping(world, "Annotations") as server:

        def queried(targets: Any) -> list[dict[str, str]]:
            names = ("namespace", "pod", "rayhelm_dev_service", "rayhelm_dev_tenant", "rayhelm_dev_gateway", "__path")
            return sorted(
                ({name: dict(each)[name] for name in names if name in dict(each)} for each in targets), key=str
            )

        def wanted() -> list[dict[str, str]]:
            ours = [each for each in world.expected() if dict(each)["pod"] not in ("kuberay-operator", DCGM)]
            return queried(each for each in ours if ("endpoint", "metrics") in each and ("__path", "/metrics") in each)

        eventually(
            lambda: queried(found_targets(server)) == wanted(),
            "one target for each pod",
            shows=lambda: (found_targets(server), wanted()),
        )


def test_rules_of_the_chart_are_loaded_by_the_label_of_the_selector(world: World) -> None:
    world.install("PodMonitor")
    wait_for_rules(world)
    with world.operator.prometheus() as server:
        info = 'rayhelm:service_info{rayhelm_dev_service="chat"}'
        eventually(lambda: server.asks(info), "a recorded series")


def wait_for_rules(world: World) -> None:
    """The operator may write a configuration after each object that it sees."""
    names = {item["metadata"]["name"] for item in rules_of(world)}
    eventually(
        lambda: all(any(name in file for file in world.operator.rules()) for name in names),
        f"the rules {names}",
        shows=lambda: (world.operator.rules().keys(), world.operator.said[-3000:]),
    )


def rules_of(world: World) -> list[Object]:
    text = world.cluster.kubectl("get", "prometheusrules", f"--namespace={world.system}", "--output=yaml")
    return list(yaml.safe_load(text)["items"])


def test_objects_without_the_selected_label_are_reported_as_not_scraped(world: World) -> None:
    """The expressions of the alerts ServiceNotScraped and GatewayNotScraped."""
    world.install("PodMonitor", {"release": "another"})
    eventually(lambda: not world.operator.jobs() and not world.operator.rules(), "an empty configuration")
    apart = world.platform("None", {**SELECTED})
    world.upgrade("platform", "platform", world.system, apart)
    wait_for_rules(world)
    with world.operator.prometheus() as server:
        for label, scraped in (
            ("service", conditions.scraped_services(Scope())),
            ("gateway", conditions.scraped_gateways(Scope())),
        ):
            name = f"rayhelm_dev_{label}"
            expression = f"rayhelm:{label}_info unless on (namespace, {name}) {scraped}"
            eventually(lambda expression=expression: server.asks(expression), f"a {label} that is not scraped")  # type: ignore[misc]
        assert server.targets() == []


def test_two_ways_at_once_scrape_a_pod_twice(world: World) -> None:
    """Why charts refuse it, and `rayhelm lint` finds it."""
    world.install("PodMonitor")
    again = over(example("gateway/minimal"), {"scraping": {"kind": "ScrapeConfig", "labels": SELECTED}})
    manifest = world.helm(
        [
            *["template", "gateway", str(charts_dir() / "gateway"), f"--namespace={world.gateways}"],
            *["--show-only=templates/operations/scrapeconfigs.yaml", "--values=-"],
        ],
        yaml.safe_dump(again),
    )
    world.cluster.apply(*(item for item in yaml.safe_load_all(manifest) if item))
    try:
        both = {"podMonitor": JOBS["PodMonitor"], "scrapeConfig": len(GATEWAY_PATHS)}
        eventually(
            lambda: Counter(job.partition("/")[0] for job in world.operator.jobs()) == both,
            "a configuration of both kinds",
            shows=lambda: (world.operator.jobs(), world.operator.said[-3000:]),
        )
        with world.operator.prometheus() as server:
            twice = 'count by (namespace, pod, endpoint, metrics_path) (up{rayhelm_dev_gateway!=""}) > 1'
            eventually(lambda: len(server.asks(twice)) == 4, "two pods with two paths", shows=server.targets)
    finally:
        world.cluster.kubectl("delete", "scrapeconfigs", "--all", f"--namespace={world.gateways}")
