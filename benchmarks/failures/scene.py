"""A fleet on the node, installed as a rehearsal installs it, with as many of everything as the row wants."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from failures.redis import redis, with_redis
from rayhelm.kube.kubectl import Kubectl, find_kubectl
from rayhelm.rehearsal import record
from rayhelm.rehearsal.caller import Target
from rayhelm.rehearsal.checks import find, namespaces_of, objects_of
from rayhelm.rehearsal.load import NAMESPACE, Load, load
from rayhelm.rehearsal.stage import READY, Stage, namespace
from rayhelm.rehearsal.without_cards import CALLER, Cast, cast_of
from rayhelm.render.files import render_fleet
from rayhelm.render.releases import Release
from rayhelm.standin.cluster import Place
from rayhelm.values.ray_service import RayServiceValues
from rayhelm.values.ray_service.image import Image

__all__ = ["IMAGE", "Scene", "Setting", "scene"]

IMAGE, DOOR_IMAGE = "rayhelm.local/ray:cpu", "rayhelm.local/ray:haproxy"
FLEETS = Path(__file__).parent / "fleets"


@dataclass(frozen=True)
class Setting:
    """What is installed."""

    fleet: str = "one"
    """A file of `fleets`."""
    workers: int = 1
    """Each with a replica and an ingress."""
    doors: int = 2
    redis: bool = False
    """GCS fault tolerance."""


@dataclass
class Scene:
    """What runs."""

    setting: Setting
    stage: Stage
    cast: Cast
    load: Load | None = None
    """The one that runs now."""
    switched: float | None = None
    """When another Ray cluster had taken over, in seconds since the epoch; None where none did."""

    @property
    def services(self) -> list[Release]:
        return [release for release in self.cast.releases if release.chart == "ray-service"]

    @property
    def service(self) -> Release:
        return self.services[0]

    @property
    def door(self) -> Release:
        (door,) = (release for release in self.cast.releases if release.chart == "gateway")
        return door

    def targets(self, key: str = "") -> list[Target]:
        return [replace(target, key=key or self.stage.keys[CALLER]) for target in self.cast.targets]

    @contextmanager
    def called(self, name: str = "callers", key: str = "", patience: float = READY) -> Iterator[Load]:
        with load(self.stage.kubectl, IMAGE, self.targets(key), patience=patience, name=name) as running:
            yield running

    def pods(self, role: str) -> list[str]:
        """Names, oldest first."""
        found = sorted(self.stage.pods(self.service, role), key=lambda pod: pod["metadata"]["creationTimestamp"])
        return [pod["metadata"]["name"] for pod in found]

    def whole(self) -> None:
        """Waits until every pod is there and ready, and Serve's applications run."""
        for release in self.services:

            def complete(release: Release = release) -> bool:
                heads, workers = (self.stage.pods(release, role) for role in ("head", "worker"))
                statuses = [status for pod in heads + workers for status in pod["status"].get("containerStatuses", ())]
                ready = bool(statuses) and all(status["ready"] for status in statuses)
                return ready and (len(heads), len(workers)) == (1, self.setting.workers)

            self.stage.wait(complete, f"all pods of {release.name}", release.namespace)
            self.stage.settled(release)
        self.stage.rolled(self.door)

    def inside(self, pod: str, script: str) -> None:
        """Runs a script in a worker."""
        where = (pod, f"--namespace={self.service.namespace}", "--container=ray-worker")
        self.stage.kubectl("exec", *where, "--", "bash", "-c", script)

    def changed(self, release: Release, change: Mapping[str, Any]) -> Release:
        """The release with other values laid over its own."""
        plain = release.values.model_dump(by_alias=True, mode="json")
        return replace(release, values=type(release.values).model_validate(_over(plain, change)))


@contextmanager
def scene(setting: Setting, stage: Stage) -> Iterator[Scene]:
    """Installs it, and takes it away."""
    rendered = render_fleet(FLEETS / f"{setting.fleet}.yaml")
    found = find(stage.kubectl)
    repository, _, tag = IMAGE.rpartition(":")
    image = Image.model_validate({"repository": repository, "tag": tag, "rayhelm": True})
    place = Place(kuberay=found.kuberay, image=image, haproxy=DOOR_IMAGE, api_servers=tuple(found.api_servers))
    (cluster,) = rendered.loaded.fleet.clusters
    cast = cast_of(rendered, place, cluster=cluster, workers=setting.workers, doors=setting.doors)
    if setting.redis:
        cast = replace(cast, releases=tuple(_with_redis(release) for release in cast.releases))
    objects = objects_of(cast.releases)
    made = record.record_of(rendered.plan.fleet, cast.releases, namespaces_of(cast.releases, objects))
    stage.kubectl.apply_objects(namespace(NAMESPACE))
    record.write(stage.kubectl, made)
    try:
        if setting.redis:
            redis(stage, [release.namespace for release in cast.releases if release.chart == "ray-service"])
        stage.raise_all(cast.releases)
        played = Scene(setting, stage, cast)
        played.whole()
        yield played
    finally:
        _end_at_once(stage, cast)
        record.clear(stage, made)
        if setting.redis:
            stage.kubectl("delete", "namespace", "redis", "--ignore-not-found")


def _end_at_once(stage: Stage, cast: Cast) -> None:
    """Nobody calls any more: pods need none of the time that they have to end requests."""
    for release in (release for release in cast.releases if release.chart == "ray-service"):
        where = f"--namespace={release.namespace}"
        stage.helm("uninstall", release.name, where, "--ignore-not-found")
        stage.kubectl("delete", "pods", "--all", where, "--force", "--grace-period=0")


def stage_of(kubeconfig: Path) -> Stage:
    return Stage(Kubectl(find_kubectl(), kubeconfig), kubeconfig)


def _with_redis(release: Release) -> Release:
    if not isinstance(release.values, RayServiceValues):
        return release
    return replace(release, values=with_redis(release.values))


def _over(base: Any, change: Any) -> Any:
    if not (isinstance(base, dict) and isinstance(change, Mapping)):
        return json.loads(json.dumps(change))
    return {**base, **{key: _over(base.get(key), value) for key, value in change.items()}}
