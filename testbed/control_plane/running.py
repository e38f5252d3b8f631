"""A control plane that runs: its parts can be ended, started again and waited for, one by one."""

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

__all__ = ["ORDER", "ControlPlane", "run_of"]

ORDER = (
    *("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"),
    *("ray-stand-in", "kwok", "kuberay-operator"),
)
"""Of the start; the end goes the other way."""

PATIENCE = 180.0
"""Seconds for one part on a loaded machine; a part that ends is noticed at once."""


def run_of(home: Home, part: str) -> str:
    """Return the mark of a part's processes: found again also where the record was lost."""
    digest = hashlib.sha256(str(home.folder.resolve()).encode()).hexdigest()[:16]
    return f"control-plane-{digest}-{part}"


@dataclass(frozen=True)
class ControlPlane:
    """Everything that one `up` started."""

    home: Home

    @property
    def record(self) -> Record:
        record = self.home.record()
        if record is None:
            raise MissingError("no control plane runs here: `make control-plane` starts one")
        return record

    def part(self, name: str) -> Part:
        return self.record.parts[name]

    def is_healthy(self, name: str) -> bool:
        """Return whether a part runs and says so."""
        part = self.part(name)
        return self._process(part).is_alive and self.reports_healthy(part)

    def reports_healthy(self, part: Part) -> bool:
        """Ask a part for its health."""
        return is_healthy(part, self.home)

    def start(self, name: str) -> None:
        """Start a part that does not run, and waits until it is well."""
        self.begin(self.part(name))
        self.wait(name)

    def begin(self, part: Part) -> None:
        """Start a part, and notes it."""
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
        """End a part and all that it started; `grace` 0 kills it."""
        processes.stop_run(self.part(name).run, grace=grace)

    def restart(self, name: str, *, grace: float = 5.0) -> None:
        self.end(name, grace=grace)
        self.start(name)

    @contextmanager
    def without(self, name: str) -> Iterator[None]:
        """Return a part is away for as long as the block runs."""
        self.end(name)
        try:
            yield
        finally:
            self.start(name)

    def _process(self, part: Part) -> Process:
        return Process(part.pid, part.created, self.home.log(part.name))
