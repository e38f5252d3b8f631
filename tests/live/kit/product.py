"""A fleet's releases on a node without cards: platform, tenants, services and door, by Helm, as a person would."""

import json
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

import httpx

from charts.kit import over
from live.kit.cluster import Cluster
from rayhelm.charts.helm import charts_dir
from rayhelm.errors import RayhelmError
from rayhelm.fleet_files import Rendered, render_fleet
from rayhelm.processes import wait_until
from rayhelm.rehearsal.checks import namespaces_of, objects_of
from rayhelm.rehearsal.record import clear, record_of
from rayhelm.rehearsal.stage import Stage
from rayhelm.releases import Release
from rayhelm.serving.stand_in_cluster import (
    Place,
    gateway_without_cards,
    platform_without_cards,
    service_without_cards,
    tenant_without_cards,
)
from rayhelm.values.emit import changed
from rayhelm.values.gateway import GatewayValues
from rayhelm.values.gateway.network import Caller
from rayhelm.values.gateway.tenants import Tenant
from rayhelm.values.platform import PlatformValues
from rayhelm.values.ray_service import RayServiceValues
from rayhelm.values.ray_service.image import Image
from rayhelm.values.tenant import TenantValues
from testbed.images.__main__ import build
from testbed.node.images import give
from testbed.node.operator import install_operator
from testbed.tools import program

__all__ = ["FORBIDDEN", "GUESTS", "Product", "install"]

FORBIDDEN = "of-guests"
"""A model that the fleet's tenants may not call."""
GUESTS = "guests"
"""Another tenant, who may call every model, and often."""

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
READY = 900.0
"""Seconds for a service; idle, with two cores, it takes some 150."""


@dataclass
class Product:
    """What runs, and the keys to it."""

    cluster: Cluster
    rendered: Rendered
    releases: Sequence[Release]
    keys: dict[str, str] = field(default_factory=dict)
    """By tenant."""
    begun: dict[str, float] = field(default_factory=dict)
    """When a release was installed last."""
    seconds: dict[str, float] = field(default_factory=dict)
    """From a service's install until it was ready, and until it had switched."""

    def helm(self, *arguments: str, text: str = "", wait: float = 600) -> str:
        command = [str(program("helm")), f"--kubeconfig={self.cluster.node.home.kubeconfig}", *arguments]
        answer = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=wait)
        assert answer.returncode == 0, f"helm {' '.join(arguments)}: {answer.stderr.strip()}\n{answer.stdout}"
        return answer.stdout

    def install(self, release: Release) -> None:
        """`helm upgrade --install`, as the README says: the namespace of a service is there, with the labels that chart
        `tenant` gives it, and nobody is to make it again."""
        self.begun[release.name] = time.monotonic()
        where = [release.name, str(charts_dir() / release.chart), f"--namespace={release.namespace}", "--values=-"]
        options = [] if release.chart == "ray-service" else ["--create-namespace"]
        self.helm("upgrade", "--install", *where, *options, text=json.dumps(changed(release.values)))

    def remove(self) -> None:
        """Takes all of it away: whoever comes next has the names and the memory."""
        stage = Stage(self.cluster.kubectl, self.cluster.node.home.kubeconfig)
        names = namespaces_of(self.releases, objects_of(self.releases))
        clear(stage, record_of(self.rendered.plan.fleet, self.releases, names))

    def of(self, chart: str) -> list[Release]:
        return [release for release in self.releases if release.chart == chart]

    def counts(self, tenant: Release) -> None:
        """Waits until a tenant's quota counts RayServices: until then none may be made. Where the kind is younger than
        the quota, Kubernetes takes up to five minutes."""

        def in_force() -> bool:
            quotas = self.cluster.get(tenant.name, "resourcequota")["items"]
            return any("count/rayservices.ray.io" in quota.get("status", {}).get("used", {}) for quota in quotas)

        self._wait(in_force, f"the quotas of {tenant.name}", tenant.name)

    def becomes_ready(self, release: Release) -> None:
        """Waits for the RayService; fails with what the cluster says of it."""

        def ready() -> bool:
            status = self.cluster.get(release.namespace, "rayservice", release.name).get("status", {})
            return any(item["type"] == "Ready" and item["status"] == "True" for item in status.get("conditions", ()))

        self._wait(ready, f"RayService {release.name}", release.namespace)
        self.seconds[release.name] = time.monotonic() - self.begun[release.name]

    def opens(self, gateway: Release) -> None:
        """Waits until the door has found the services' names, some seconds after there are such: until then 503."""

        def answers() -> bool:
            models = [name for name in gateway.values.model_dump()["models"] if name != FORBIDDEN]
            headers = {"Authorization": f"Bearer {self.keys[GUESTS]}"}
            statuses = [
                httpx.post(
                    f"{self.door}/v1/completions",
                    json={"model": model, "prompt": "hi", "max_tokens": 1},
                    headers=headers,
                    timeout=60,
                    trust_env=False,
                ).status_code
                for model in models
            ]
            return set(statuses) == {200}

        self._wait(answers, "an answer through the gateway", gateway.namespace)
        for service in self.of("ray-service"):
            self.seconds[f"{service.name}, first token"] = time.monotonic() - self.begun[service.name]

    def changed(self, release: Release, overlay: Mapping[str, Any]) -> Release:
        """The same release with other values laid over its own."""
        return replace(release, values=type(release.values).model_validate(over(changed(release.values), overlay)))

    def ray_clusters(self, release: Release) -> set[str]:
        return {item["metadata"]["name"] for item in self.cluster.get(release.namespace, "raycluster")["items"]}

    def leaves(self, release: Release, clusters: set[str]) -> None:
        """Waits until another Ray cluster serves, and those are gone."""

        def serves_another() -> bool:
            status = self.cluster.get(release.namespace, "rayservice", release.name)["status"]
            return status["activeServiceStatus"].get("rayClusterName", "") not in clusters

        self._wait(serves_another, f"another cluster of {release.name}", release.namespace)
        self.seconds[f"{release.name}, switch"] = time.monotonic() - self.begun[release.name]
        self._wait(lambda: not clusters & self.ray_clusters(release), f"the end of {clusters}", release.namespace)

    def _wait(self, so: Callable[[], bool], what: str, namespace: str) -> None:
        try:
            wait_until(lambda: so() or None, what=what, timeout=READY, poll=1)
        except RayhelmError as error:
            raise AssertionError(f"{error}\n{self.tells(namespace)}") from error

    def tells(self, namespace: str) -> str:
        """Pods and events, for whoever reads why it failed."""
        pods = self.cluster.kubectl("get", "pods", f"--namespace={namespace}", "--output=wide")
        events = self.cluster.kubectl("get", "events", f"--namespace={namespace}", "--sort-by=.lastTimestamp")
        return f"{pods}\n{events}"

    @property
    def door(self) -> str:
        """URL of one pod of the gateway: this computer is let in by address, which a Service's would hide."""
        (release,) = self.of("gateway")
        pods = self.cluster.get(release.namespace, "pods", f"--selector=rayhelm.dev/gateway={release.name}")["items"]
        ready = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
        return f"http://{ready[0]['status']['podIP']}:8080"


def install(cluster: Cluster, fleet: Path) -> Product:
    """Everything of a fleet, in the order of its releases; returns when services and door are ready."""
    operator, layout = install_operator(cluster.kubectl), build()
    images = {tag: give(cluster.node.home, cluster.pid, layout, tag) for tag in ("cpu", "haproxy")}
    place = Place(
        kuberay=operator,
        image=Image.model_validate({**_parts(images["cpu"]), "rayhelm": True}),
        haproxy=images["haproxy"],
        api_servers=(f"{cluster.node.network.node}/32",),
    )
    rendered = render_fleet(fleet)
    host = f"{cluster.node.network.host}/32"
    releases = [_without_cards(release, rendered, place, host) for release in rendered.releases]
    product = Product(cluster, rendered, releases)
    for release in product.of("platform") + product.of("tenant"):
        product.install(release)
    for release in product.of("tenant"):
        product.counts(release)
    for release in product.of("gateway"):
        cluster.apply(_namespace(release.namespace))
        for tenant in (*rendered.loaded.fleet.tenants, GUESTS):
            product.keys[tenant] = token_urlsafe(24)
            cluster.apply(_secret(release.namespace, tenant, product.keys[tenant]))
    for release in product.of("ray-service"):
        product.install(release)
    for release in product.of("gateway"):
        product.install(release)
    for release in product.of("ray-service"):
        product.becomes_ready(release)
    for release in product.of("gateway"):
        namespace = f"--namespace={release.namespace}"
        cluster.kubectl("rollout", "status", f"deployment/{release.name}", namespace, "--timeout=300s")
        product.opens(release)
    return product


def _without_cards(release: Release, rendered: Rendered, place: Place, host: str) -> Release:
    values = release.values
    match values:
        case RayServiceValues():
            plans = rendered.plan.of_service(release.name)
            architectures = {plan.answers_to: plan.architecture for plan in plans}
            return replace(release, values=service_without_cards(values, architectures, place).values)
        case GatewayValues():
            return replace(release, values=_with_guests(gateway_without_cards(values, place), host))
        case TenantValues():
            return replace(release, values=tenant_without_cards(values))
        case PlatformValues():
            return replace(release, values=platform_without_cards(values, place))
    raise AssertionError(release.chart)


def _with_guests(values: GatewayValues, host: str) -> GatewayValues:
    """Lets this computer knock, and has a model that only another tenant may call."""
    callers = {**values.network_policy.callers, "this-computer": Caller(cidrs=[host])}
    policy = values.network_policy.model_copy(update={"callers": callers})
    models = {**values.models, FORBIDDEN: next(iter(values.models.values()))}
    guests = {"keys": {"secretName": f"gateway-keys-{GUESTS}"}, "models": list(models), "requestsPerMinute": 6000}
    tenants = {**values.tenants, GUESTS: Tenant.model_validate(guests)}
    return values.model_copy(update={"network_policy": policy, "models": models, "tenants": tenants})


def _namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": RESTRICTED}}


def _secret(namespace: str, tenant: str, key: str) -> dict[str, Any]:
    line = f"{sha256(key.encode()).hexdigest()} tests\n"
    meta = {"name": f"gateway-keys-{tenant}", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"keys": line}}


def _parts(reference: str) -> dict[str, str]:
    repository, _, tag = reference.rpartition(":")
    return {"repository": repository, "tag": tag}
