"""One build at a time in one checkout; the lock goes with the process that holds it."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["one_at_a_time"]


@contextmanager
def one_at_a_time(folder: Path, what: str) -> Iterator[None]:
    """Wait for another build in this folder, and says so."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another build of {what} is at work here: waiting for it", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
