"""Everything that an API server tells of one namespace, in the order in which it happened there.

Asking now and then would miss what lasts for a moment: a watch misses nothing, and resource versions put the events of
different kinds in one order.
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
"""Seconds after which the API server ends a watch, and the next one goes on where it ended."""
PATIENCE = 120
"""Seconds without a word of the API server."""


class Event(NamedTuple):
    """An object was made, changed or deleted."""

    version: int
    """Of the whole store: events of all kinds are in this order."""
    kind: str
    gone: bool
    at: float
    """When it was heard, in seconds since 1970."""
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

    def of(self, service: str) -> list[Event]:
        """Events of a RayService and of all that comes from it."""
        assert self._broken is None, f"a watch ended: {self._broken!r}"
        with self._lock:
            found = [*self._events["RayService", service], *self._events["RayCluster", service]]
            owners = {service} | {event.object["metadata"]["name"] for event in found}
            for owner in owners:
                found += [*self._events["Pod", owner], *self._events["Service", owner]]
        return sorted(found, key=lambda event: event.version)

    def _begin(self, kind: str) -> tuple[Any, str]:
        """A client for each thread, and the version from which on nothing is missed."""
        client = pykube.HTTPClient(pykube.KubeConfig.from_file(str(self._kubeconfig)), timeout=PATIENCE)
        with self._ask(client, kind) as answer:
            return client, str(answer.json()["metadata"]["resourceVersion"])

    def _follow(self, client: Any, since: str, kind: str) -> None:
        options = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(WATCH)}
        try:
            while not self._ended.is_set():
                with self._ask(client, kind, {**options, "resourceVersion": since}) as answer:
                    for line in answer.iter_lines(chunk_size=None):
                        since = self._take(kind, json.loads(line))
        except Exception as error:  # whatever it was, the record has a hole
            self._broken = error
        finally:
            client.session.close()

    def _take(self, kind: str, told: Object) -> str:
        """Notes an event, and returns its version."""
        item = told["object"]
        if told["type"] == "ERROR":
            raise ConnectionError(item.get("message"))
        version = str(item["metadata"]["resourceVersion"])
        if told["type"] != "BOOKMARK":
            event = Event(int(version), kind, told["type"] == "DELETED", time.time(), item)
            with self._lock:
                self._events[kind, _owner(kind, item)].append(event)
        return version

    def _ask(self, client: Any, kind: str, options: dict[str, str] | None = None) -> Any:
        where = {"version": KINDS[kind], "namespace": self._namespace, "url": f"{kind.lower()}s"}
        answer = client.get(**where, params=options or {}, stream=bool(options))
        answer.raise_for_status()
        return answer


def _owner(kind: str, item: Object) -> str:
    """What an object is found by: the RayService itself, else what made it."""
    if kind == "RayService":
        return str(item["metadata"]["name"])
    owners = item["metadata"].get("ownerReferences", [])
    return str(owners[0]["name"]) if owners else ""
