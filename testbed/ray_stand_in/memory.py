"""What was PUT, and what of it the Ray of a head still knows."""

import threading
import time
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from rayhelm.closed import Closed
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
    """The JSON that was PUT; its text where it was none."""


class Deployed(Closed):
    """A configuration in force."""

    config: dict[str, Any]
    time: float
    """Seconds since 1970."""
    started_with: dict[str, Any]
    """The first configuration of this life: Serve opens its port by it and changes it no more."""
    has_routes: bool
    """An application with a route was there once: Serve's proxy is healthy from then on."""
    running: frozenset[str] = frozenset()
    """Applications that were RUNNING with what the configuration says of them now."""


class Record(Closed):
    """One RayCluster."""

    namespace: str
    cluster: str
    service: str
    life: str
    """The head's life in which `deployed` was PUT."""
    deployed: Deployed | None = None
    puts: tuple[Put, ...] = ()


_RECORD = TypeAdapter(Record)


class Memory:
    """Records by the UID of the RayCluster, in a file each where a folder is given. For many threads."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder / "clusters" if folder else None
        self._lock = threading.RLock()
        files = sorted(self._folder.glob("*.json")) if self._folder else []
        self._records = {file.stem: read(file, _RECORD) for file in files}

    def puts(self, namespace: str, name: str) -> tuple[Put, ...]:
        """What was PUT to a RayCluster, or to all those of a RayService, in the order of time."""
        records = [record for record in self._records.values() if record.namespace == namespace]
        found = [put for record in records if name in (record.cluster, record.service) for put in record.puts]
        return tuple(sorted(found, key=lambda put: put.time))

    def deployed(self, head: Head) -> Deployed | None:
        """What the Ray of this head knows; None before the first PUT of its life."""
        record = self._records.get(head.cluster.uid)
        return record.deployed if record and record.life == head.life else None

    def refuse(self, head: Head, body: Any, status: int, answer: str) -> None:
        """Record a PUT that changed nothing."""
        with self._lock:
            self._keep(head, self.deployed(head), _put(head, body, status, answer))

    def accept(self, head: Head, config: dict[str, Any]) -> None:
        """Puts a configuration in force. Applications that it leaves as they were go on running."""
        with self._lock:
            before = self.deployed(head)
            unchanged = _unchanged(before.config, config) if before else frozenset[str]()
            deployed = Deployed(
                config=config,
                time=time.time(),
                started_with=before.started_with if before else config,
                has_routes=(before is not None and before.has_routes) or _has_routes(config),
                running=before.running & unchanged if before else frozenset(),
            )
            self._keep(head, deployed, _put(head, config, 200, ""))

    def note_running(self, head: Head, config: dict[str, Any], names: frozenset[str]) -> None:
        """Record which applications came to run with a configuration, should it still be in force."""
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


def _unchanged(before: dict[str, Any], now: dict[str, Any]) -> frozenset[str]:
    if before.get("target_capacity") != now.get("target_capacity"):
        return frozenset()
    same = [application for application in now["applications"] if application in before["applications"]]
    return frozenset(application.get("name", "default") for application in same)


def _has_routes(config: dict[str, Any]) -> bool:
    return any(application.get("route_prefix", "/") is not None for application in config["applications"])
