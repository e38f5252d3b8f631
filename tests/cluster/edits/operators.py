"""The operator under test goes, comes back, or gives way to one of another version."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cluster.kit.cluster import Cluster
from testbed.control_plane import Bed
from testbed.control_plane.home import Part

__all__ = ["PART", "Operators", "operators"]

PART = "kuberay-operator"
RIGHTS = Path(__file__).with_name("other-operator.yaml")


@dataclass(frozen=True)
class Operators:
    """One of them runs at a time."""

    bed: Bed
    ours: Part
    other: Path | None

    def end(self) -> None:
        self.bed.end(PART)

    def start_ours(self) -> None:
        self._start(self.ours.command[0])

    def start_other(self) -> None:
        self._start(str(self.other))

    def _start(self, program: str) -> None:
        self.bed.begin(self.ours.model_copy(update={"command": (program, *self.ours.command[1:])}))
        self.bed.wait(PART)


@contextmanager
def operators(cluster: Cluster, other: Path | None) -> Iterator[Operators]:
    """Whatever happens within, the operator under test runs afterwards, with the rights that it had."""
    bed = cluster.place.bed
    found = Operators(bed, bed.part(PART), other)
    if other:
        cluster.kubectl("apply", "-f", str(RIGHTS))
    try:
        yield found
    finally:
        if bed.part(PART).command != found.ours.command or not bed.is_well(PART):
            found.end()
            found.start_ours()
        if other:
            cluster.kubectl("delete", "-f", str(RIGHTS))
