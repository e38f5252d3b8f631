"""Fixtures that are expensive to build: one xdist worker builds, the others wait and use the result."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

__all__ = ["build_once"]


def build_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], None]) -> Path:
    """Return a folder of this test session that `build` fills once. A build that failed is an error in each worker."""
    base = factory.getbasetemp()
    # The base folder of a worker lies in that of the session.
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, built = base / name, base / f"{name}.built"
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            folder.mkdir()
            build(folder)
            built.touch()
    return folder
