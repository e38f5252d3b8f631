"""What a control plane's parts are doing."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from rayhelm.errors import RayhelmError
from rayhelm.kube.kubectl import Kubectl
from rayhelm.processes import list_members, measure_memory
from testbed.control_plane.bed import ORDER, Bed, run_of
from testbed.control_plane.home import Home
from testbed.tools import program

__all__ = ["State", "state_of", "status"]


@dataclass(frozen=True)
class State:
    """Of one part."""

    name: str
    state: str
    """`ready`, `not answering` or `ended`."""
    pid: int
    """0 where it is not ours."""
    port: int
    memory: int
    """Bytes; pages that processes share are counted once."""


def status(home: Home) -> list[State]:
    """Every part, in the order of their start; nothing where no control plane is. An API server that is somebody else's
    has no process here."""
    if home.record() is None:
        return []
    bed = Bed(home)
    states = [state_of(bed, name) for name in ORDER if name in bed.record.parts]
    return [_joined(bed), *states] if bed.record.joined else states


def _joined(bed: Bed) -> State:
    port = urlsplit(bed.record.server).port or 443
    try:
        kubectl = Kubectl(program("kubectl"), bed.home.kubeconfig, run=run_of(bed.home, "kubectl"))
        kubectl("get", "--raw=/readyz", "--request-timeout=10s")
    except RayhelmError:
        return State("kube-apiserver", "not answering", 0, port, 0)
    return State("kube-apiserver", "ready", 0, port, 0)


def state_of(bed: Bed, name: str) -> State:
    """Of one that was started here."""
    part = bed.part(name)
    alive = list_members(part.run)
    state = "ended" if not alive else "ready" if bed.is_well(name) else "not answering"
    return State(name, state, part.pid, part.port, measure_memory(alive))
