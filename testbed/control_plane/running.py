"""A running control plane: stop, restart and wait for its parts."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rayhelm import processes
from rayhelm.errors import MissingError
from rayhelm.processes import Process
from testbed.control_plane.health import is_healthy
from testbed.control_plane.home import Home, Part, Record

__all__ = ["ORDER", "PATIENCE", "ControlPlane", "run_of"]

ORDER = (
    *("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"),
    *("ray-stand-in", "kwok", "kuberay-operator"),
)
"""Order of the start; the stop has the reverse order."""

PATIENCE = 180.0
"""Seconds for a part to become healthy on a loaded machine; a part that exits is detected at once."""


def run_of(home: Home, part: str) -> str:
    """Return the mark of a part's processes. It is derived from the folder, so it is known without the record."""
    digest = hashlib.sha256(str(home.folder.resolve()).encode()).hexdigest()[:16]
    return f"control-plane-{digest}-{part}"


@dataclass(frozen=True)
class ControlPlane:
    """All parts that one `up` started."""

    home: Home

    @property
    def record(self) -> Record:
        record = self.home.record()
        if record is None:
            raise MissingError("no control plane runs in this checkout: `make control-plane` starts one")
        return record

    def part(self, name: str) -> Part:
        return self.record.parts[name]

    def is_healthy(self, name: str) -> bool:
        """Return whether a part runs and its health check succeeds."""
        part = self.part(name)
        return self._process(part).is_alive and self.reports_healthy(part)

    def reports_healthy(self, part: Part) -> bool:
        """Return the result of a part's health check."""
        return is_healthy(part, self.home)

    def start(self, name: str) -> None:
        """Start a part that does not run, and wait until it is healthy."""
        self.begin(self.part(name))
        self.wait(name)

    def begin(self, part: Part) -> None:
        """Start a part and record it."""
        process = processes.start(
            part.command, run=part.run, log=self.home.log(part.name), env={**os.environ, **part.environment}
        )
        part = part.model_copy(update={"pid": process.pid, "created": process.created})
        self.home.write(self.record.with_part(part))

    def wait(self, name: str) -> None:
        """Until a part is well.

        Raises rayhelm.processes.ProcessDied or TimedOut, with the end of its log."""
        part = self.part(name)
        processes.wait_until(
            lambda: self.reports_healthy(part) or None,
            what=name,
            timeout=PATIENCE,
            needs=[self._process(part)],
            poll=0.1,
        )

    def end(self, name: str, *, grace: float = 5.0) -> None:
        """Stop a part and its child processes; `grace` 0 kills them."""
        processes.stop_run(self.part(name).run, grace=grace)

    def restart(self, name: str, *, grace: float = 5.0) -> None:
        self.end(name, grace=grace)
        self.start(name)

    @contextmanager
    def without(self, name: str) -> Iterator[None]:
        """Stop a part while the block runs."""
        self.end(name)
        try:
            yield
        finally:
            self.start(name)

    def _process(self, part: Part) -> Process:
        return Process(part.pid, part.created, self.home.log(part.name))
