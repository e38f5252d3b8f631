"""The state of a control plane's parts."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from rayhelm.errors import RayhelmError
from rayhelm.live.cluster.kubectl import Kubectl
from rayhelm.processes import list_members, measure_memory
from testbed.control_plane.home import Home
from testbed.control_plane.running import ORDER, ControlPlane, run_of
from testbed.tools import program

__all__ = ["State", "state_of", "status"]


@dataclass(frozen=True)
class State:
    """State of one part."""

    name: str
    state: str
    """`ready`, `not answering` or `ended`."""
    pid: int
    """0 for the API server of a joined cluster."""
    port: int
    memory: int
    """Bytes; pages that processes share count once."""


def status(home: Home) -> list[State]:
    """Return every part, in the order of their start; empty without a control plane. The API server of a joined cluster
    has no process here."""
    if home.record() is None:
        return []
    plane = ControlPlane(home)
    states = [state_of(plane, name) for name in ORDER if name in plane.record.parts]
    return [_read_joined_state(plane), *states] if plane.record.joined else states


def _read_joined_state(plane: ControlPlane) -> State:
    port = urlsplit(plane.record.server).port or 443
    try:
        kubectl = Kubectl(program("kubectl"), plane.home.kubeconfig, run=run_of(plane.home, "kubectl"))
        kubectl("get", "--raw=/readyz", "--request-timeout=60s")
    except RayhelmError:
        return State("kube-apiserver", "not answering", 0, port, 0)
    return State("kube-apiserver", "ready", 0, port, 0)


def state_of(plane: ControlPlane, name: str) -> State:
    """Return the state of a part that was started here."""
    part = plane.part(name)
    alive = list_members(part.run)
    state = "ended" if not alive else "ready" if plane.is_healthy(name) else "not answering"
    return State(name, state, part.pid, part.port, measure_memory(alive))
