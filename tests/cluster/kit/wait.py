"""Waiting for what a cluster does in its own time."""

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["PATIENCE", "eventually", "stays"]

T = TypeVar("T")

PATIENCE = 600.0
"""Seconds: far more than a loaded computer takes. Nothing is judged by how long it took."""


def eventually(ask: Callable[[], T], what: str, *, shows: Callable[[], object] | None = None) -> T:
    """What `ask` answers, once it is true. Says `what` did not come about, and what `shows` answers then."""
    deadline = time.monotonic() + PATIENCE
    while not (answer := ask()):
        if time.monotonic() > deadline:
            seen = f"\n{shows()}" if shows else ""
            raise AssertionError(f"after {PATIENCE:.0f} s: {what} has not come about; last answer {answer!r}{seen}")
        time.sleep(0.3)
    return answer


def stays(ask: Callable[[], object], what: str, *, seconds: float = 8.0) -> None:
    """Something is so, and is still so after the operator has looked at it several times (it does every 2 s)."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert ask(), what
        time.sleep(0.5)
