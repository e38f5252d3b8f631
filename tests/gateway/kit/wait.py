"""Waiting for what has to come; a loaded computer only makes it later."""

from collections.abc import Callable
from typing import TypeVar

from rayhelm.processes import wait_until

T = TypeVar("T")
PATIENCE = 60.0
"""Seconds; no test is about time, so this only ends one that would wait for ever."""


def eventually(ready: Callable[[], T | bool | None], what: str) -> T | bool:
    """What `ready` answers once it is neither None nor False."""
    return wait_until(lambda: ready() or None, what=what, timeout=PATIENCE, poll=0.02)
