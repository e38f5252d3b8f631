"""Failures that tests set, by RayCluster or RayService."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, TypeAdapter

from rayhelm.facts.closed import Closed
from testbed.ray_stand_in.files import read, write
from testbed.ray_stand_in.lookup import Head

__all__ = ["Broken", "Failure", "Failures"]

# Without RUNNING: a test can make an application fail, but not succeed.
Broken = Literal["NOT_STARTED", "DEPLOYING", "DEPLOY_FAILED", "UNHEALTHY", "DELETING"]


class Failure(Closed):
    """A failure. Parts that are not set behave normally."""

    applications: Mapping[str, Broken] = {}
    """Status by application. It applies only to applications that were PUT."""
    dashboard: int | None = Field(default=None, ge=300, le=599)
    """HTTP status of every answer of the dashboard."""
    serve: int | None = Field(default=None, ge=300, le=599)
    """HTTP status of Serve's health check."""
    hang: bool = False
    """Accept every request and never answer."""
    only_new: bool = False
    """Do not apply to RayClusters that exist now: the next one fails, as in a failed upgrade."""


class Instruction(Closed):
    """A failure, and the RayClusters that it does not apply to."""

    failure: Failure
    spared: tuple[str, ...] = ()
    """UIDs of RayClusters without the failure."""


_BOOK = TypeAdapter(dict[str, Instruction])


class Failures:
    """Failures by `<namespace>/<name of a RayCluster or RayService>`; a RayCluster's own failure overrides that
    of its RayService."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = folder / "failures.json" if folder else None
        self._instructions: dict[str, Instruction] = (
            read(self._file, _BOOK) if self._file and self._file.exists() else {}
        )
        self._lock = threading.Lock()

    def reported(self, namespace: str, name: str) -> Failure | None:
        """Return the failure of exactly this name."""
        reported = self._instructions.get(f"{namespace}/{name}")
        return reported.failure if reported else None

    def fail(self, namespace: str, name: str, failure: Failure, spared: tuple[str, ...]) -> None:
        """Set the failure of a name; it replaces an earlier one."""
        with self._lock:
            self._keep({**self._instructions, f"{namespace}/{name}": Instruction(failure=failure, spared=spared)})

    def heal(self, namespace: str, name: str) -> None:
        with self._lock:
            self._keep({key: reported for key, reported in self._instructions.items() if key != f"{namespace}/{name}"})

    def of(self, head: Head) -> Failure:
        """Return the failure of a head; an empty Failure if it has none."""
        for name in (head.cluster.name, head.cluster.service):
            reported = self._instructions.get(f"{head.cluster.namespace}/{name}")
            if reported and head.cluster.uid not in reported.spared:
                return reported.failure
        return Failure()

    def _keep(self, reported: dict[str, Instruction]) -> None:
        if self._file:
            write(self._file, _BOOK, reported)
        self._instructions = reported
