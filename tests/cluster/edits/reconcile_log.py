"""Read the operator's log: how often it has reconciled a RayService, and with which errors.

An edit has no effect if the operator has reconciled several times and nothing changed. Events have the errors too, but
the operator does not send all of them.
"""

import json
import threading
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["ReconcileLog"]

MIN_INTERVAL = 1.0
"""Seconds. Reconciliations after an error follow at once, and count as one."""
KINDS = ("RayService", "RayCluster")
RETRIED = ("the object has been modified", "already exists")
"""Errors of the operator's own cache, which is behind its last write for a moment: it retries, and succeeds."""
INVALID = ("The RayCluster spec is invalid", "The RayCluster UpgradeStrategy is invalid")


class LogLine(NamedTuple):
    """A line about a reconciliation of one object."""

    at: float
    """Seconds since 1970."""
    reconciliation: str
    """Its id."""
    message: str
    error: str
    """Empty if there is none."""


class ReconcileLog:
    """Reconciliations from now on: the log is read from its current end."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._read = log.stat().st_size
        self._rest = b""
        self._lines: dict[tuple[str, str, str], list[LogLine]] = defaultdict(list)
        self._lock = threading.Lock()

    def count_since(self, namespace: str, service: str, moment: float) -> int:
        """Count the reconciliations of a RayService that began after a time, in seconds since 1970.

        One that began earlier may have read the RayService as it was. It logs for seconds on a loaded computer."""
        begins: dict[str, float] = {}
        for line in self._list_lines("RayService", namespace, service):
            begins.setdefault(line.reconciliation, line.at)
        count, last = 0, moment
        for at in begins.values():
            if at > moment and (count == 0 or at - last >= MIN_INTERVAL):
                count, last = count + 1, at
        return count

    def errors(self, namespace: str, service: str, moment: float) -> list[str]:
        """Return the errors of a RayService's reconciliations after a time, each once."""
        lines = self._list_lines("RayService", namespace, service)
        errors = [line.error for line in lines if line.at > moment and line.error]
        return list(dict.fromkeys(error for error in errors if not any(text in error for text in RETRIED)))

    def is_invalid(self, namespace: str, cluster: str) -> bool:
        """Whether the operator reports a RayCluster as invalid and creates no pods for it."""
        return any(line.message in INVALID for line in self._list_lines("RayCluster", namespace, cluster))

    def _list_lines(self, kind: str, namespace: str, name: str) -> list[LogLine]:
        with self._lock:
            self._read_new_lines()
            return list(self._lines[kind, namespace, name])

    def _read_new_lines(self) -> None:
        with self._log.open("rb") as log:
            log.seek(self._read)
            fresh = log.read()
        self._read += len(fresh)
        *lines, self._rest = (self._rest + fresh).split(b"\n")
        for line in lines:
            if b'"reconcileID"' in line:
                self._add(json.loads(line))

    def _add(self, line: dict[str, Any]) -> None:
        for kind in KINDS:
            # Only the errors of a RayCluster: it has too many other lines.
            if kind not in line or (kind == "RayCluster" and line["level"] != "error"):
                continue
            about, at = line[kind], datetime.fromisoformat(line["ts"]).timestamp()
            error = str(line.get("error", "")) if line["msg"] == "Reconciler error" else ""
            self._lines[kind, about["namespace"], about["name"]].append(
                LogLine(at, line["reconcileID"], line["msg"], error)
            )
