"""End a control plane; nothing of it stays."""

import time
from collections.abc import Callable

from rayhelm import processes
from rayhelm.errors import RayhelmError
from testbed.control_plane.home import Home
from testbed.control_plane.leave import leave, wait_for_deletions
from testbed.control_plane.lock import alone
from testbed.control_plane.running import ORDER, run_of

__all__ = ["alive", "clear", "down", "end_all"]

PARTS = ("kubectl", *reversed(ORDER))
"""Clients of the API server end before it, so that none waits for a connection."""

MOMENT = 0.05
"""Seconds."""


def down(home: Home, say: Callable[[str], None] = lambda line: None) -> int:
    """End all processes and removes the folder, also of a control plane that is half dead or whose folder is gone;
    says how many processes there were. A cluster that was joined is left as it was, but for its CRDs."""
    with alone(home, say):
        return clear(home, say)


def clear(home: Home, say: Callable[[str], None] = lambda line: None) -> int:
    joined = home.is_joined
    if joined:
        wait_for_deletions(home)
    ended = end_all(home)
    if joined:
        leave(home, say)
    home.remove()
    return ended


def end_all(home: Home) -> int:
    """Raises RayhelmError where something cannot be ended."""
    # Twice: a process that is just becoming another program carries no mark for a moment.
    if not alive(home):
        time.sleep(MOMENT)
        if not alive(home):
            return 0
    try:
        return sum(processes.stop_run(run_of(home, part), grace=10) for part in PARTS)
    except RuntimeError as error:
        raise RayhelmError(str(error)) from None


def alive(home: Home) -> int:
    """Return the processes that carry the marks of a control plane, whatever its folder says."""
    return sum(len(processes.list_members(run_of(home, part))) for part in PARTS)
