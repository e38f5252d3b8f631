"""What a control plane's parts are doing."""

from dataclasses import dataclass

from rayhelm.processes import members, memory_held
from testbed.control_plane.bed import ORDER, Bed
from testbed.control_plane.home import Home

__all__ = ["State", "status"]


@dataclass(frozen=True)
class State:
    """Of one part."""

    name: str
    state: str
    """`ready`, `not answering` or `ended`."""
    pid: int
    port: int
    memory: int
    """Bytes; pages that processes share are counted once."""


def status(home: Home) -> list[State]:
    """Every part, in the order of their start; nothing where no control plane is."""
    if home.record() is None:
        return []
    bed = Bed(home)
    return [_state(bed, name) for name in ORDER if name in bed.record.parts]


def _state(bed: Bed, name: str) -> State:
    part = bed.part(name)
    alive = members(part.run)
    state = "ended" if not alive else "ready" if bed.is_well(name) else "not answering"
    return State(name, state, part.pid, part.port, memory_held(alive))
