"""Half of the cores for the measured program, the other half for load and upstream."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["pin_to", "split_cores"]


def split_cores() -> tuple[set[int], set[int]]:
    """Return the cores of the measured program and those of the load; the same if there is only one core."""
    cores = sorted(os.sched_getaffinity(0))
    half = max(1, len(cores) // 2)
    return set(cores[:half]), set(cores[half:]) or set(cores)


@contextmanager
def pin_to(cores: set[int]) -> Iterator[None]:
    """Pin processes that are started in this context to these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
