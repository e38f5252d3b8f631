"""Waiting for a condition."""

from collections.abc import Callable
from typing import TypeVar

from rayhelm.processes import wait_until

T = TypeVar("T")
PATIENCE = 300.0
"""Seconds after which a test that would hang fails."""


def wait_for(ready: Callable[[], T | bool | None], what: str) -> T | bool:
    """Wait until `ready` returns neither None nor False, and return that value."""
    return wait_until(lambda: ready() or None, what=what, timeout=PATIENCE, poll=0.02)
