"""Stop a control plane and remove its folder."""

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
"""Order of the stop: clients of the API server first, so that none waits for a connection."""

MOMENT = 0.05
"""Seconds between SIGTERM and SIGKILL."""


def down(home: Home, say: Callable[[str], None] = lambda line: None) -> int:
    """Stop all processes, remove the folder, and return the number of processes. This also works if some processes have
    died or the folder is missing. A joined cluster is left as it was, except for its CRDs."""
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
    """Stop all processes and return their number. Raises RayhelmError if a process cannot be stopped."""
    # Two attempts: a process has no readable environment for a moment while it executes a program.
    if not alive(home):
        time.sleep(MOMENT)
        if not alive(home):
            return 0
    try:
        return sum(processes.stop_run(run_of(home, part), grace=10) for part in PARTS)
    except RuntimeError as error:
        raise RayhelmError(str(error)) from None


def alive(home: Home) -> int:
    """Count the processes with the mark of a control plane, with or without its folder."""
    return sum(len(processes.list_members(run_of(home, part))) for part in PARTS)
