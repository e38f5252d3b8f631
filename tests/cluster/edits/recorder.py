"""Record every event of one namespace in its order.

Polling would miss short states; a watch misses nothing. Resource versions order the events of different kinds.
"""

import json
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pykube

from cluster.kit.cluster import Object

__all__ = ["Event", "Recorder"]

KINDS = {"RayService": "ray.io/v1", "RayCluster": "ray.io/v1", "Pod": "v1", "Service": "v1"}
WATCH = 5
"""Seconds after which the API server ends a watch; the next one continues there."""
PATIENCE = 120
"""Seconds without an answer of the API server."""


class Event(NamedTuple):
    """An object was created, changed or deleted."""

    version: int
    """Resource version; events of all kinds are in this order."""
    kind: str
    removed: bool
    at: float
    """When it was received, in seconds since 1970."""
    object: Object


class Recorder:
    """Watches an empty namespace from now on."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self._kubeconfig, self._namespace = kubeconfig, namespace
        self._events: dict[tuple[str, str], list[Event]] = defaultdict(list)
        self._lock = threading.Lock()
        self._broken: Exception | None = None
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._follow, args=(*self._begin(kind), kind)) for kind in KINDS]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def list_events(self, service: str) -> list[Event]:
        """Return the events of a RayService and of everything that it owns."""
        assert self._broken is None, f"a watch ended: {self._broken!r}"
        with self._lock:
            found = [*self._events["RayService", service], *self._events["RayCluster", service]]
            owners = {service} | {event.object["metadata"]["name"] for event in found}
            for owner in owners:
                found += [*self._events["Pod", owner], *self._events["Service", owner]]
        return sorted(found, key=lambda event: event.version)

    def _begin(self, kind: str) -> tuple[Any, str]:
        """Return a client for a thread, and the resource version to watch from."""
        client = pykube.HTTPClient(pykube.KubeConfig.from_file(str(self._kubeconfig)), timeout=PATIENCE)
        with self._ask(client, kind) as answer:
            return client, str(answer.json()["metadata"]["resourceVersion"])

    def _follow(self, client: Any, since: str, kind: str) -> None:
        options = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(WATCH)}
        try:
            while not self._ended.is_set():
                with self._ask(client, kind, {**options, "resourceVersion": since}) as answer:
                    for line in answer.iter_lines(chunk_size=None):
                        since = self._add(kind, json.loads(line))
        except Exception as error:  # any error leaves a gap in the record
            self._broken = error
        finally:
            client.session.close()

    def _add(self, kind: str, message: Object) -> str:
        """Record an event, and return its resource version."""
        item = message["object"]
        if message["type"] == "ERROR":
            raise ConnectionError(item.get("message"))
        version = str(item["metadata"]["resourceVersion"])
        if message["type"] != "BOOKMARK":
            event = Event(int(version), kind, message["type"] == "DELETED", time.time(), item)
            with self._lock:
                self._events[kind, _owner(kind, item)].append(event)
        return version

    def _ask(self, client: Any, kind: str, options: dict[str, str] | None = None) -> Any:
        where = {"version": KINDS[kind], "namespace": self._namespace, "url": f"{kind.lower()}s"}
        answer = client.get(**where, params=options or {}, stream=bool(options))
        answer.raise_for_status()
        return answer


def _owner(kind: str, item: Object) -> str:
    """Name of the RayService itself, or of the owner of another object."""
    if kind == "RayService":
        return str(item["metadata"]["name"])
    owners = item["metadata"].get("ownerReferences", [])
    return str(owners[0]["name"]) if owners else ""
