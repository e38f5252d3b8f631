"""What the operator says in its log: how often it has looked at a RayService, and what kept it from going on.

That nothing happens is proven by its looking. Events would tell the errors too, but of many some are never sent.
"""

import json
import threading
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Looks"]

APART = 1.0
"""Seconds: passes that follow an error follow at once, and count as one look."""
KINDS = ("RayService", "RayCluster")
PASSING = "the object has been modified"
"""Of a write that met another one, and is made again."""
INVALID = ("The RayCluster spec is invalid", "The RayCluster UpgradeStrategy is invalid")


class Line(NamedTuple):
    """Of a pass over one object."""

    at: float
    """Seconds since 1970."""
    says: str
    error: str
    """Empty where it is none."""


class Looks:
    """Looks from now on: the log is read on from where it ended."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._read = log.stat().st_size
        self._rest = b""
        self._lines: dict[tuple[str, str, str], list[Line]] = defaultdict(list)
        self._lock = threading.Lock()

    def since(self, namespace: str, service: str, moment: float) -> int:
        """Looks at a RayService after a moment, in seconds since 1970."""
        count, last = 0, moment
        for line in self._of("RayService", namespace, service):
            if line.at > moment and (count == 0 or line.at - last >= APART):
                count, last = count + 1, line.at
        return count

    def errors(self, namespace: str, service: str, moment: float) -> list[str]:
        """With what passes over a RayService ended after a moment, each once."""
        lines = self._of("RayService", namespace, service)
        errors = [line.error for line in lines if line.at > moment and line.error and PASSING not in line.error]
        return list(dict.fromkeys(errors))

    def is_invalid(self, namespace: str, cluster: str) -> bool:
        """Whether the operator will not have a RayCluster, and so makes no pods for it."""
        return any(line.says in INVALID for line in self._of("RayCluster", namespace, cluster))

    def _of(self, kind: str, namespace: str, name: str) -> list[Line]:
        with self._lock:
            self._go_on()
            return list(self._lines[kind, namespace, name])

    def _go_on(self) -> None:
        with self._log.open("rb") as log:
            log.seek(self._read)
            fresh = log.read()
        self._read += len(fresh)
        *lines, self._rest = (self._rest + fresh).split(b"\n")
        for line in lines:
            if b'"reconcileID"' in line:
                self._take(json.loads(line))

    def _take(self, line: dict[str, Any]) -> None:
        for kind in KINDS:
            # Of a RayCluster it is enough to know what is wrong with it: of the others there are too many.
            if kind not in line or (kind == "RayCluster" and line["level"] != "error"):
                continue
            about, at = line[kind], datetime.fromisoformat(line["ts"]).timestamp()
            error = str(line.get("error", "")) if line["msg"] == "Reconciler error" else ""
            self._lines[kind, about["namespace"], about["name"]].append(Line(at, line["msg"], error))
