"""One build at a time in one checkout; the lock goes with the process that holds it."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.tools.site import Site

__all__ = ["one_at_a_time"]


@contextmanager
def one_at_a_time(site: Site) -> Iterator[None]:
    """Waits for another build here, and says so."""
    folder = site.store / "go"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another build of tools is at work here: waiting for it", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
