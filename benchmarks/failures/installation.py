"""A fleet on the node, installed as in a rehearsal, with the number of pods of a setting."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from failures.redis import start_redis, with_redis
from rayhelm.deploy.render.files import render_fleet
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.ray_service.image import RayImage
from rayhelm.live.cluster.kubectl import Kubectl, find_kubectl
from rayhelm.run.rehearsal import record
from rayhelm.run.rehearsal.checks import inspect_cluster, list_namespaces, render_objects
from rayhelm.run.rehearsal.cluster_session import READY, ClusterSession, build_namespace
from rayhelm.run.rehearsal.load import NAMESPACE, LoadGenerator, run_load
from rayhelm.run.rehearsal.load_client import LoadTarget
from rayhelm.run.rehearsal.without_gpus import LOAD_CLIENT, StandInSet, build_stand_ins
from rayhelm.run.standin.cluster import StandInCluster

__all__ = ["IMAGE", "Installation", "Setting", "install"]

IMAGE, GATEWAY_IMAGE = "rayhelm.local/ray:cpu", "rayhelm.local/ray:haproxy"
FLEETS = Path(__file__).parent / "fleets"


@dataclass(frozen=True)
class Setting:
    """What is installed."""

    fleet: str = "one"
    """A file of `fleets`."""
    workers: int = 1
    """Workers; each has a replica and an ingress."""
    gateways: int = 2
    redis: bool = False
    """GCS fault tolerance."""


@dataclass
class Installation:
    """The fleet that runs."""

    setting: Setting
    session: ClusterSession
    stand_ins: StandInSet
    load: LoadGenerator | None = None
    """The load that runs now."""
    switched: float | None = None
    """When another Ray cluster was active, in seconds since the epoch; None if there was none."""

    @property
    def services(self) -> list[Release]:
        return [release for release in self.stand_ins.releases if release.chart == "ray-service"]

    @property
    def service(self) -> Release:
        return self.services[0]

    @property
    def gateway(self) -> Release:
        (gateway,) = (release for release in self.stand_ins.releases if release.chart == "gateway")
        return gateway

    def targets(self, key: str = "") -> list[LoadTarget]:
        return [replace(target, key=key or self.session.keys[LOAD_CLIENT]) for target in self.stand_ins.targets]

    @contextmanager
    def run_load(self, name: str = "load", key: str = "", timeout: float = READY) -> Iterator[LoadGenerator]:
        with run_load(self.session.kubectl, IMAGE, self.targets(key), timeout=timeout, name=name) as running:
            yield running

    def pods(self, role: str) -> list[str]:
        """Return the names of pods, the oldest first."""
        found = sorted(self.session.list_pods(self.service, role), key=lambda pod: pod["metadata"]["creationTimestamp"])
        return [pod["metadata"]["name"] for pod in found]

    def wait_until_ready(self) -> None:
        """Wait until every pod is ready and the Serve applications run."""
        for release in self.services:

            def complete(release: Release = release) -> bool:
                heads, workers = (self.session.list_pods(release, role) for role in ("head", "worker"))
                statuses = [status for pod in heads + workers for status in pod["status"].get("containerStatuses", ())]
                ready = bool(statuses) and all(status["ready"] for status in statuses)
                return ready and (len(heads), len(workers)) == (1, self.setting.workers)

            self.session.wait(complete, f"all pods of {release.name}", release.namespace)
            self.session.wait_until_reconciled(release)
        self.session.wait_for_rollout(self.gateway)

    def run_in_worker(self, pod: str, script: str) -> None:
        """Run a script in a worker."""
        where = (pod, f"--namespace={self.service.namespace}", "--container=ray-worker")
        self.session.kubectl("exec", *where, "--", "bash", "-c", script)

    def find_haproxy(self) -> str:
        """Return the version of HAProxy in the pods of the gateway."""
        where = (f"deployment/{self.gateway.name}", f"--namespace={self.gateway.namespace}")
        first_line = self.session.kubectl("exec", *where, "--", "haproxy", "-v").splitlines()[0]
        return first_line.split()[2]

    def change_values(self, release: Release, change: Mapping[str, Any]) -> Release:
        """Return the release with changed values."""
        plain = release.values.model_dump(by_alias=True, mode="json")
        return replace(release, values=type(release.values).model_validate(_over(plain, change)))


@contextmanager
def install(setting: Setting, session: ClusterSession) -> Iterator[Installation]:
    """Install the fleet, and remove it on exit."""
    rendered = render_fleet(FLEETS / f"{setting.fleet}.yaml")
    found = inspect_cluster(session.kubectl)
    repository, _, tag = IMAGE.rpartition(":")
    image = RayImage.model_validate({"repository": repository, "tag": tag, "includesRayhelm": True})
    place = StandInCluster(
        kuberay=found.kuberay, image=image, haproxy=GATEWAY_IMAGE, api_servers=tuple(found.api_servers)
    )
    (cluster,) = rendered.plan.declared.clusters
    stand_ins = build_stand_ins(rendered, place, cluster=cluster, workers=setting.workers, gateways=setting.gateways)
    if setting.redis:
        stand_ins = replace(stand_ins, releases=tuple(_with_redis(release) for release in stand_ins.releases))
    objects = render_objects(stand_ins.releases)
    created = record.create_record(
        rendered.plan.fleet, stand_ins.releases, list_namespaces(stand_ins.releases, objects)
    )
    session.kubectl.apply_objects(build_namespace(NAMESPACE))
    record.write(session.kubectl, created)
    try:
        if setting.redis:
            start_redis(
                session, [release.namespace for release in stand_ins.releases if release.chart == "ray-service"]
            )
        session.install_all(stand_ins.releases)
        installed = Installation(setting, session, stand_ins)
        installed.wait_until_ready()
        yield installed
    finally:
        _delete_services(session, stand_ins)
        record.remove_all(session, created)
        if setting.redis:
            session.kubectl("delete", "namespace", "redis", "--ignore-not-found")


def _delete_services(session: ClusterSession, stand_ins: StandInSet) -> None:
    """Delete the services without waiting for requests in flight."""
    for release in (release for release in stand_ins.releases if release.chart == "ray-service"):
        where = f"--namespace={release.namespace}"
        session.run_helm("uninstall", release.name, where, "--ignore-not-found")
        session.kubectl("delete", "pods", "--all", where, "--force", "--grace-period=0")


def open_session(kubeconfig: Path) -> ClusterSession:
    return ClusterSession(Kubectl(find_kubectl(), kubeconfig), kubeconfig)


def _with_redis(release: Release) -> Release:
    if not isinstance(release.values, RayServiceValues):
        return release
    return replace(release, values=with_redis(release.values))


def _over(base: Any, change: Any) -> Any:
    if not (isinstance(base, dict) and isinstance(change, Mapping)):
        return json.loads(json.dumps(change))
    return {**base, **{key: _over(base.get(key), value) for key, value in change.items()}}
