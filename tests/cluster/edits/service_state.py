"""States of one RayService over time, from the recorder's events."""

from collections.abc import Iterator, Sequence
from typing import Any

from cluster.edits.recorder import Event
from cluster.kit.cluster import Object, condition, reason

__all__ = ["ServiceState", "get_state", "iterate_states"]

TRACKED = ("Ready", "UpgradeInProgress", "RollbackInProgress")


class ServiceState:
    """All objects of a RayService at one time."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], Object] = {}
        self.version = 0
        self.time = 0.0
        """When its last change was received, in seconds since 1970; a new `lastUpdateTime` is none."""

    def apply(self, event: Event) -> None:
        key = (event.kind, event.object["metadata"]["name"])
        before = self._objects.get(key)
        if event.removed:
            self._objects.pop(key, None)
        else:
            self._objects[key] = event.object
        self.version = event.version
        if _is_progress(before, event):
            self.time = max(self.time, event.at)

    def list_all(self, kind: str) -> list[Object]:
        """In the order of their creation."""
        return [item for (of, _), item in self._objects.items() if of == kind]

    def get(self, kind: str, name: str) -> Object | None:
        return self._objects.get((kind, name))

    @property
    def service(self) -> Object:
        (found,) = self.list_all("RayService")
        return found

    def status(self, which: str) -> Object:
        """`activeServiceStatus` or `pendingServiceStatus`."""
        found: Object = self.service.get("status", {}).get(which, {})
        return found

    @property
    def active(self) -> str:
        """Name of the active RayCluster; empty before there is one."""
        return str(self.status("activeServiceStatus").get("rayClusterName", ""))

    @property
    def pending(self) -> str:
        return str(self.status("pendingServiceStatus").get("rayClusterName", ""))

    @property
    def is_suspended(self) -> bool:
        """Whether KubeRay 1.7.0 has deleted every RayCluster because of `spec.suspend`."""
        return reason(self.service, "Ready") == "SuspendComplete"

    @property
    def conditions(self) -> dict[str, str]:
        service = self.service
        values = {name: f"{condition(service, name)} {reason(service, name)}".strip() for name in TRACKED}
        return {name: words for name, words in values.items() if words}

    @property
    def gpus(self) -> int:
        """GPUs of pods that are bound to a node."""
        return sum(map(_gpus, self.list_all("Pod")))

    @property
    def endpoints(self) -> int:
        """Pods that receive traffic: Ready, and selected by the Service for traffic."""
        service = self.get("Service", f"{self.service['metadata']['name']}-serve-svc")
        return (
            sum(_receives_traffic(pod, service["spec"]["selector"]) for pod in self.list_all("Pod")) if service else 0
        )


def iterate_states(events: Sequence[Event], after: int, start: ServiceState) -> Iterator[ServiceState]:
    """Yield `start`, and the state after each later event; it is one object that changes."""
    yield start
    for event in events:
        if event.version > after:
            start.apply(event)
            yield start


def get_state(events: Sequence[Event], version: int | None = None) -> ServiceState:
    """Return the state at a resource version, or now."""
    state = ServiceState()
    for event in events:
        if version is None or event.version <= version:
            state.apply(event)
    return state


def _is_progress(before: Object | None, event: Event) -> bool:
    """Whether an event changes more than the time of the last update.

    KubeRay 1.7.0 writes that time again and again while a Gateway is missing.
    """
    if before is None or event.removed:
        return True
    return _remove_times(before) != _remove_times(event.object)


def _remove_times(item: Object) -> Object:
    metadata = {
        key: value for key, value in item["metadata"].items() if key not in ("resourceVersion", "managedFields")
    }
    status = {key: value for key, value in item.get("status", {}).items() if key != "lastUpdateTime"}
    return {**item, "metadata": metadata, "status": status}


def _receives_traffic(pod: Object, selector: dict[str, str]) -> bool:
    labels: dict[str, str] = pod["metadata"].get("labels", {})
    is_deleted = "deletionTimestamp" in pod["metadata"]
    return condition(pod, "Ready") == "True" and not is_deleted and selector.items() <= labels.items()


def _gpus(pod: Object) -> int:
    if not pod["spec"].get("nodeName") or pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    requested: list[dict[str, Any]] = [
        container.get("resources", {}).get("requests", {}) for container in pod["spec"]["containers"]
    ]
    return sum(int(count) for requests in requested for name, count in requests.items() if name == "nvidia.com/gpu")
