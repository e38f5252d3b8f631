"""Install the releases of a rehearsal on a cluster with Helm, and wait for them."""

import json
import subprocess
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

from rayhelm.deploy.charts.helm import charts_dir, find_helm
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.emit import select_changed
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.errors import RayhelmError
from rayhelm.live.cluster.kubectl import Kubectl
from rayhelm.processes import wait_until

__all__ = ["RESTRICTED", "ClusterSession"]

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
READY = 900.0
"""Seconds for a service to be ready; a stand-in takes about 60 on an idle computer with two cores."""
_COUNTED = {
    "RayService": "count/rayservices.ray.io",
    "PodMonitor": "count/podmonitors.monitoring.coreos.com",
    "ScrapeConfig": "count/scrapeconfigs.monitoring.coreos.com",
}
"""What quotas count, by kind of custom resource."""
MIN_RECONCILED_SECONDS = 10.0
"""Seconds for which a state has to hold: KubeRay reports Serve's status some seconds late."""


@dataclass
class ClusterSession:
    """Releases that were installed on one cluster."""

    kubectl: Kubectl
    kubeconfig: Path | None = None
    context: str = ""
    report_progress: Callable[[str], None] = lambda _: None
    """Receives what the session waits for."""
    keys: dict[str, str] = field(default_factory=dict)
    """An API key of each tenant of the gateway; created here."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds from the installation of a service until it was ready."""
    installed: dict[str, Release] = field(default_factory=dict)
    """By chart and name, in the order of installation."""

    def run_helm(self, *arguments: str, text: str = "", wait: float = 600) -> str:
        options = [f"--kubeconfig={self.kubeconfig}"] if self.kubeconfig else []
        options += [f"--kube-context={self.context}"] if self.context else []
        command = [str(find_helm()), *options, *arguments]
        answer = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=wait)
        if answer.returncode:
            raise RayhelmError(f"helm {' '.join(arguments)}: {answer.stderr.strip()}\n{answer.stdout}".rstrip())
        return answer.stdout

    def install(self, release: Release) -> None:
        """Run `helm upgrade --install`. Chart `tenant` has created and labeled the namespace of a service."""
        self.report_progress(f"{release.chart} {release.name}: install")
        self.installed[f"{release.chart}/{release.name}"] = release
        if release.chart == "ray-service":
            self._create_namespace(release.namespace)
        if isinstance(release.values, GatewayValues):
            self._create_namespace(release.namespace)
            self._create_keys(release.namespace, release.values)
        where = [release.name, str(charts_dir() / release.chart), f"--namespace={release.namespace}", "--values=-"]
        # Helm 4 would remove the tenant's labels from the namespaces of services.
        options = ["--create-namespace"] if release.chart in ("platform", "tenant") else []
        self.run_helm("upgrade", "--install", *where, *options, text=json.dumps(select_changed(release.values)) + "\n")

    def install_all(self, releases: Collection[Release]) -> None:
        """Install releases in order, and wait until services and gateways are ready."""
        for release in releases:
            if isinstance(release.values, RayServiceValues):
                self.wait_for_quota(release.namespace, "RayService", release.values.scraping.kind)
            began = time.monotonic()
            self.install(release)
            self.seconds[release.name] = -began
        for release in releases:
            if release.chart == "ray-service":
                self.wait_until_ready(release)
                self.seconds[release.name] += time.monotonic()
            if release.chart == "gateway":
                self.wait_for_rollout(release)
        self.seconds = {name: took for name, took in self.seconds.items() if took > 0}

    def wait_for_quota(self, namespace: str, *kinds: str) -> None:
        """Wait until the quotas of a tenant count these kinds of objects; until then none can be created.

        Kubernetes takes up to five minutes if the CRD is newer than the quota.
        """
        resources = {_COUNTED[kind] for kind in kinds if kind in _COUNTED}

        def is_in_force() -> bool:
            quotas = self.kubectl.get("resourcequota", namespace=namespace)["items"]
            return all(
                resources & quota["spec"]["hard"].keys() <= quota.get("status", {}).get("used", {}).keys()
                for quota in quotas
            )

        self.wait(is_in_force, f"the quotas of {namespace}", namespace)

    def wait_until_ready(self, release: Release) -> None:
        """Wait for the RayService. The error has the pods and events of its namespace."""
        self.wait(
            lambda: _has_condition(self.get_service(release), "Ready"), f"RayService {release.name}", release.namespace
        )

    def wait_until_reconciled(self, release: Release) -> None:
        """Wait until an edit of the RayService is complete: one cluster, and its applications run."""
        since = 0.0

        def stays_reconciled() -> bool:
            nonlocal since
            if not self._is_reconciled(release):
                since = 0.0
                return False
            since = since or time.monotonic()
            return time.monotonic() - since >= MIN_RECONCILED_SECONDS

        self.wait(stays_reconciled, f"RayService {release.name} to be reconciled", release.namespace)

    def _is_reconciled(self, release: Release) -> bool:
        item = self.get_service(release)
        status = item.get("status", {})
        active = status.get("activeServiceStatus", {})
        applications = active.get("applicationStatuses", {}).values()
        return (
            status.get("observedGeneration") == item["metadata"]["generation"]
            and _has_condition(item, "Ready")
            and not _has_condition(item, "UpgradeInProgress")
            and bool(applications)
            and all(each["status"] == "RUNNING" for each in applications)
            and self.list_ray_clusters(release) == {active["rayClusterName"]}
        )

    def wait_for_rollout(self, release: Release) -> None:
        """Wait for the rollout of a gateway."""
        where = f"--namespace={release.namespace}"
        self.kubectl("rollout", "status", f"deployment/{release.name}", where, "--timeout=300s")

    def wait_for_switch(self, release: Release, before: Collection[str]) -> None:
        """Wait until another Ray cluster is active."""

        def is_switched() -> bool:
            active = self.get_service(release)["status"]["activeServiceStatus"]
            return active.get("rayClusterName", "") not in before

        self.wait(is_switched, f"a new cluster of {release.name}", release.namespace)

    def wait_until_removed(self, release: Release, before: Collection[str]) -> None:
        """Wait until these Ray clusters are removed."""
        is_removed = lambda: not set(before) & self.list_ray_clusters(release)  # noqa: E731
        self.wait(is_removed, f"the removal of {', '.join(before)}", release.namespace)

    def get_service(self, release: Release) -> dict[str, Any]:
        return self.kubectl.get("rayservice", release.name, namespace=release.namespace)

    def list_ray_clusters(self, release: Release) -> set[str]:
        items = self.kubectl.get("raycluster", namespace=release.namespace)["items"]
        owners = {item["metadata"]["name"]: item["metadata"].get("ownerReferences", ()) for item in items}
        return {name for name, owned in owners.items() if release.name in {owner["name"] for owner in owned}}

    def list_pods(self, release: Release, role: str = "") -> list[dict[str, Any]]:
        """List the pods of a service or a gateway, without those that are being deleted."""
        label = {"ray-service": "rayhelm.dev/service", "gateway": "rayhelm.dev/gateway"}[release.chart]
        wanted = f"--selector={label}={release.name}" + (f",rayhelm.dev/role={role}" if role else "")
        items = self.kubectl.get("pods", wanted, namespace=release.namespace)["items"]
        return [item for item in items if not item["metadata"].get("deletionTimestamp")]

    def wait(
        self, condition: Callable[[], bool], what: str, namespace: str, timeout: float = READY, poll: float = 1
    ) -> None:
        self.report_progress(what)
        try:
            wait_until(lambda: condition() or None, what=what, timeout=timeout, poll=poll)
        except RayhelmError as error:
            raise RayhelmError(f"{error}\n{self.describe_namespace(namespace)}") from error

    def describe_namespace(self, namespace: str) -> str:
        """Return pods and events for an error message."""
        pods = self.kubectl("get", "pods", f"--namespace={namespace}", "--output=wide")
        events = self.kubectl("get", "events", f"--namespace={namespace}", "--sort-by=.lastTimestamp")
        return f"{pods}\n{events}"

    def add_key(self, release: Release, tenant: str) -> str:
        """Add a second key of a tenant, and return it."""
        assert isinstance(release.values, GatewayValues)
        key = token_urlsafe(24)
        keys = release.values.tenants[tenant].keys
        lines = [_build_key_line(self.keys[tenant], "first"), _build_key_line(key, "second")]
        self.kubectl.apply_objects(_build_secret(release.namespace, keys.secret_name, keys.secret_key, lines))
        return key

    def remove_other_keys(self, release: Release, tenant: str, key: str) -> None:
        """Remove all keys of a tenant except this one."""
        assert isinstance(release.values, GatewayValues)
        keys = release.values.tenants[tenant].keys
        self.kubectl.apply_objects(
            _build_secret(release.namespace, keys.secret_name, keys.secret_key, [_build_key_line(key, "only")])
        )
        self.keys[tenant] = key

    def _create_namespace(self, name: str) -> None:
        there = {item["metadata"]["name"] for item in self.kubectl.get("namespaces")["items"]}
        if name not in there:
            self.kubectl.apply_objects(build_namespace(name))

    def _create_keys(self, where: str, values: GatewayValues) -> None:
        for name, tenant in values.tenants.items():
            if name not in self.keys:
                self.keys[name] = token_urlsafe(24)
                line = _build_key_line(self.keys[name], "rehearsal")
                self.kubectl.apply_objects(
                    _build_secret(where, tenant.keys.secret_name, tenant.keys.secret_key, [line])
                )


def build_namespace(name: str, labels: Mapping[str, str] = RESTRICTED) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels)}}


def _build_key_line(key: str, name: str) -> str:
    return f"{sha256(key.encode()).hexdigest()} {name}\n"


def _build_secret(where: str, name: str, entry: str, lines: Collection[str]) -> dict[str, Any]:
    meta = {"name": name, "namespace": where}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {entry: "".join(lines)}}


def _has_condition(item: Mapping[str, Any], name: str) -> bool:
    conditions = item.get("status", {}).get("conditions", ())
    return any(each["type"] == name and each["status"] == "True" for each in conditions)
