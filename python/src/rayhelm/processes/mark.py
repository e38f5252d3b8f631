"""The mark of a run, and who carries it."""

from collections.abc import Iterator

import psutil

__all__ = ["MARK", "marked"]

MARK = "RAYHELM_RUN"
"""Environment variable that holds the id of the run."""


def marked(run: str) -> Iterator[psutil.Process]:
    """Processes whose environment names the run, zombies excepted. Those of other users cannot be read and are none."""
    if not run:
        raise ValueError("a run without an id would be everybody's")
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == run and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except (psutil.Error, OSError):
            continue
