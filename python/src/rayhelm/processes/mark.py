"""The mark of a run, and the processes that have it."""

from collections.abc import Iterator

import psutil

__all__ = ["MARK", "has_ended", "list_marked"]

MARK = "RAYHELM_RUN"
"""Environment variable that holds the id of the run."""


def list_marked(run: str) -> Iterator[psutil.Process]:
    """Yield the processes whose environment names the run. Those of other users cannot be read and are left out."""
    if not run:
        raise ValueError("an empty id would match every process")
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == run and not has_ended(process):
                yield process
        except (psutil.Error, OSError):
            continue


def has_ended(process: psutil.Process) -> bool:
    """Return whether a process has ended; a zombie only waits for its parent to read its exit status."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
