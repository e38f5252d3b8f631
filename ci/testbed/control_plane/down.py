"""Ends a control plane; nothing of it stays."""

from rayhelm import processes
from testbed.control_plane.bed import ORDER, run_of
from testbed.control_plane.home import Home
from testbed.control_plane.lock import alone

__all__ = ["clear", "down", "end_all"]


def down(home: Home) -> int:
    """Ends all processes and removes the folder, also of a control plane that is half dead; says how many processes
    there were."""
    with alone(home):
        return clear(home)


def clear(home: Home) -> int:
    ended = end_all(home)
    home.remove()
    return ended


def end_all(home: Home) -> int:
    # Those who ask the API server end before it does, so that nobody waits for a connection that will not come.
    return sum(processes.end(run_of(home, part), grace=10) for part in reversed(ORDER))
