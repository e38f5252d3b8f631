"""One command at a time works on a control plane."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.control_plane.home import Home

__all__ = ["alone"]


@contextmanager
def alone(home: Home) -> Iterator[None]:
    """Waits until nobody else starts or ends this control plane. The file beside the folder goes again."""
    path = home.folder.with_name(f".{home.folder.name}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = _held(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(lock)


def _held(path: Path) -> int:
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Whoever held it before has removed the file: a lock on it would keep nobody out.
        if path.exists() and os.fstat(lock).st_ino == path.stat().st_ino:
            return lock
        os.close(lock)
