"""Stop and start the operator under test, or one of another version in its place."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cluster.kit.cluster import Cluster
from testbed.control_plane import ControlPlane
from testbed.control_plane.home import Part

__all__ = ["PART", "OperatorManager", "manage_operators"]

PART = "kuberay-operator"
PERMISSIONS = Path(__file__).with_name("other-operator.yaml")


@dataclass(frozen=True)
class OperatorManager:
    """Runs one operator at a time."""

    plane: ControlPlane
    ours: Part
    other: Path | None
    """Program of another version."""

    def stop(self) -> None:
        self.plane.end(PART)

    def start_ours(self) -> None:
        self._start(self.ours.command[0])

    def start_other(self) -> None:
        self._start(str(self.other))

    def _start(self, program: str) -> None:
        self.plane.begin(self.ours.model_copy(update={"command": (program, *self.ours.command[1:])}))
        self.plane.wait(PART)


@contextmanager
def manage_operators(cluster: Cluster, other: Path | None) -> Iterator[OperatorManager]:
    """Restore the operator under test and its permissions on exit."""
    plane = cluster.place.plane
    found = OperatorManager(plane, plane.part(PART), other)
    if other:
        cluster.kubectl("apply", "-f", str(PERMISSIONS))
    try:
        yield found
    finally:
        if plane.part(PART).command != found.ours.command or not plane.is_healthy(PART):
            found.stop()
            found.start_ours()
        if other:
            cluster.kubectl("delete", "-f", str(PERMISSIONS))
