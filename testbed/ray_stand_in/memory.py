"""PUT configurations, and the one that each head still has."""

import threading
import time
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from rayhelm.facts.closed import Closed
from testbed.ray_stand_in.files import read, write
from testbed.ray_stand_in.lookup import Head

__all__ = ["Deployed", "Memory", "Put"]


class Put(Closed):
    """One PUT, accepted or not."""

    time: float
    """Seconds since 1970."""
    cluster: str
    head: str
    """UID of the head pod."""
    status: int
    """HTTP status of the answer."""
    answer: str
    body: Any
    """JSON of the request; the text if it is not JSON."""


class Deployed(Closed):
    """The current configuration of a head."""

    config: dict[str, Any]
    time: float
    """Seconds since 1970."""
    started_with: dict[str, Any]
    """First configuration since the head started. Serve opens its port by it and does not change the port later."""
    has_routes: bool
    """An application with a route was deployed, so Serve's proxy is healthy from then on."""
    running: frozenset[str] = frozenset()
    """Applications that were RUNNING with their current configuration."""


class Record(Closed):
    """State of one RayCluster."""

    namespace: str
    cluster: str
    service: str
    life: str
    """`Head.life` when `deployed` was PUT."""
    deployed: Deployed | None = None
    puts: tuple[Put, ...] = ()


_RECORD = TypeAdapter(Record)


class Memory:
    """Records by UID of the RayCluster; thread-safe. With a folder, each is stored in a file."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder / "clusters" if folder else None
        self._lock = threading.RLock()
        files = sorted(self._folder.glob("*.json")) if self._folder else []
        self._records = {file.stem: read(file, _RECORD) for file in files}

    def puts(self, namespace: str, name: str) -> tuple[Put, ...]:
        """Return the PUTs to a RayCluster, or to all RayClusters of a RayService, in order of time."""
        records = [record for record in self._records.values() if record.namespace == namespace]
        found = [put for record in records if name in (record.cluster, record.service) for put in record.puts]
        return tuple(sorted(found, key=lambda put: put.time))

    def deployed(self, head: Head) -> Deployed | None:
        """Return the current configuration of a head; None before the first PUT since it started."""
        record = self._records.get(head.cluster.uid)
        return record.deployed if record and record.life == head.life else None

    def refuse(self, head: Head, body: Any, status: int, answer: str) -> None:
        """Record a refused PUT."""
        with self._lock:
            self._keep(head, self.deployed(head), _put(head, body, status, answer))

    def accept(self, head: Head, config: dict[str, Any]) -> None:
        """Apply a configuration. Unchanged applications keep running."""
        with self._lock:
            before = self.deployed(head)
            unchanged = _find_unchanged(before.config, config) if before else frozenset[str]()
            deployed = Deployed(
                config=config,
                time=time.time(),
                started_with=before.started_with if before else config,
                has_routes=(before is not None and before.has_routes) or _has_routes(config),
                running=before.running & unchanged if before else frozenset(),
            )
            self._keep(head, deployed, _put(head, config, 200, ""))

    def note_running(self, head: Head, config: dict[str, Any], names: frozenset[str]) -> None:
        """Record the applications that run with a configuration, if it is still the current one."""
        with self._lock:
            deployed = self.deployed(head)
            if deployed and deployed.config == config and deployed.running != names:
                self._keep(head, deployed.model_copy(update={"running": names}))

    def _keep(self, head: Head, deployed: Deployed | None, *puts: Put) -> None:
        cluster = head.cluster
        before = self._records.get(cluster.uid)
        record = Record(
            namespace=cluster.namespace,
            cluster=cluster.name,
            service=cluster.service,
            life=head.life,
            deployed=deployed,
            puts=(*(before.puts if before else ()), *puts),
        )
        if self._folder:
            write(self._folder / f"{cluster.uid}.json", _RECORD, record)
        self._records = {**self._records, cluster.uid: record}


def _put(head: Head, body: Any, status: int, answer: str) -> Put:
    return Put(time=time.time(), cluster=head.cluster.name, head=head.pod.uid, status=status, answer=answer, body=body)


def _find_unchanged(before: dict[str, Any], now: dict[str, Any]) -> frozenset[str]:
    if before.get("target_capacity") != now.get("target_capacity"):
        return frozenset()
    same = [application for application in now["applications"] if application in before["applications"]]
    return frozenset(application.get("name", "default") for application in same)


def _has_routes(config: dict[str, Any]) -> bool:
    return any(application.get("route_prefix", "/") is not None for application in config["applications"])
