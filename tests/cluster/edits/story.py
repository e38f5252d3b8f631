"""The life of one RayService, told from the recorder's events."""

from collections.abc import Iterator, Sequence
from typing import Any

from cluster.edits.recorder import Event
from cluster.kit.cluster import Object, condition, reason

__all__ = ["Moment", "state_at", "states"]

TRACKED = ("Ready", "UpgradeInProgress", "RollbackInProgress")


class Moment:
    """All objects of a RayService as they were at one time."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], Object] = {}
        self.version = 0
        self.heard = 0.0
        """When its last change was heard, in seconds since 1970."""

    def take(self, event: Event) -> None:
        key = (event.kind, event.object["metadata"]["name"])
        if event.gone:
            self._objects.pop(key, None)
        else:
            self._objects[key] = event.object
        self.version, self.heard = event.version, max(self.heard, event.at)

    def all(self, kind: str) -> list[Object]:
        """In the order in which they were made."""
        return [item for (of, _), item in self._objects.items() if of == kind]

    def named(self, kind: str, name: str) -> Object | None:
        return self._objects.get((kind, name))

    @property
    def service(self) -> Object:
        (found,) = self.all("RayService")
        return found

    def status(self, which: str) -> Object:
        """`activeServiceStatus` or `pendingServiceStatus`."""
        found: Object = self.service.get("status", {}).get(which, {})
        return found

    @property
    def active(self) -> str:
        """The RayCluster that serves; empty before there is one."""
        return str(self.status("activeServiceStatus").get("rayClusterName", ""))

    @property
    def pending(self) -> str:
        return str(self.status("pendingServiceStatus").get("rayClusterName", ""))

    @property
    def conditions(self) -> dict[str, str]:
        service = self.service
        told = {name: f"{condition(service, name)} {reason(service, name)}".strip() for name in TRACKED}
        return {name: words for name, words in told.items() if words}

    @property
    def gpus(self) -> int:
        """Cards of pods that are bound to a node."""
        return sum(map(_gpus, self.all("Pod")))

    @property
    def endpoints(self) -> int:
        """Pods that get traffic: Ready, and selected by the Service for it."""
        service = self.named("Service", f"{self.service['metadata']['name']}-serve-svc")
        return sum(_gets_traffic(pod, service["spec"]["selector"]) for pod in self.all("Pod")) if service else 0


def states(events: Sequence[Event], after: int, start: Moment) -> Iterator[Moment]:
    """`start`, and the moment after each later event; one object, which changes."""
    yield start
    for event in events:
        if event.version > after:
            start.take(event)
            yield start


def state_at(events: Sequence[Event], version: int | None = None) -> Moment:
    """At a version of the store, or now."""
    moment = Moment()
    for event in events:
        if version is None or event.version <= version:
            moment.take(event)
    return moment


def _gets_traffic(pod: Object, selector: dict[str, str]) -> bool:
    labels: dict[str, str] = pod["metadata"].get("labels", {})
    is_going = "deletionTimestamp" in pod["metadata"]
    return condition(pod, "Ready") == "True" and not is_going and selector.items() <= labels.items()


def _gpus(pod: Object) -> int:
    if not pod["spec"].get("nodeName") or pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    asked: list[dict[str, Any]] = [
        container.get("resources", {}).get("requests", {}) for container in pod["spec"]["containers"]
    ]
    return sum(int(count) for requests in asked for name, count in requests.items() if name == "nvidia.com/gpu")
