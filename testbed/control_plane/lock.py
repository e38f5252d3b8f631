"""Lock a control plane, so that only one command changes it at a time."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.control_plane.home import Home

__all__ = ["alone", "is_held"]


@contextmanager
def alone(home: Home, say: Callable[[str], None] = lambda line: None) -> Iterator[None]:
    """Wait until no other process starts or ends this control plane. The lock file is removed afterwards."""
    path = _find_path(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = _acquire(path, lambda: say("waiting for another command that is changing this control plane"))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(lock)


def is_held(home: Home) -> bool:
    """Return whether a command is changing the control plane now."""
    try:
        lock = os.open(_find_path(home), os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _find_path(home: Home) -> Path:
    return home.folder.with_name(f".{home.name}.lock")


def _acquire(path: Path, waits: Callable[[], None]) -> int:
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waits()
            fcntl.flock(lock, fcntl.LOCK_EX)
        # The previous holder has removed the file, so a lock on it has no effect.
        if _is_at(lock, path):
            return lock
        os.close(lock)


def _is_at(lock: int, path: Path) -> bool:
    try:
        return os.fstat(lock).st_ino == path.stat().st_ino
    except FileNotFoundError:
        return False
