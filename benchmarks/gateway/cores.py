"""One half of the cores for whoever is measured, the other for load and upstream: neither slows the other down."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["on", "share"]


def share() -> tuple[set[int], set[int]]:
    """Cores of whoever is measured, and the others; the same where there is but one."""
    cores = sorted(os.sched_getaffinity(0))
    half = max(1, len(cores) // 2)
    return set(cores[:half]), set(cores[half:]) or set(cores)


@contextmanager
def on(cores: set[int]) -> Iterator[None]:
    """Processes that are started meanwhile stay on these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
