"""Lock a checkout for one build at a time. The lock ends with the process that holds it."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["one_at_a_time"]


@contextmanager
def one_at_a_time(folder: Path, what: str) -> Iterator[None]:
    """Hold the lock of a folder; print a message while another build holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another build of {what} in this checkout", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
