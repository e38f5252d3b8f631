"""Wait until a condition holds, while the processes that it needs are alive."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from rayhelm.errors import RayhelmError
from rayhelm.processes.run import Process

__all__ = ["ProcessDied", "TimedOut", "tail", "wait_until"]

T = TypeVar("T")


class ProcessDied(RayhelmError):
    """A process ended before it was ready; the message has the end of its log."""


class TimedOut(RayhelmError):
    """A condition did not hold within its timeout."""


def wait_until(
    ready: Callable[[], T | None],
    *,
    what: str,
    timeout: float,
    needs: Sequence[Process] = (),
    poll: float = 0.2,
) -> T:
    """Call `ready` every `poll` seconds until it returns something other than None, and return that.

    Raises TimedOut after `timeout` seconds, and ProcessDied if a process of `needs` ends first.
    """
    deadline = time.monotonic() + timeout
    while True:
        answer = ready()
        if answer is not None:
            return answer
        for process in needs:
            if not process.is_alive:
                raise ProcessDied(f"{what}: a process ended before it was ready\n{tail(process.log)}")
        if time.monotonic() > deadline:
            logs = "\n".join(tail(process.log) for process in needs)
            raise TimedOut(f"{what}: not ready after {timeout:.0f} s\n{logs}".rstrip())
        time.sleep(poll)


def tail(log: Path, lines: int = 20) -> str:
    """Return the last lines of a log, below its name."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 16_384))
            text = file.read().decode(errors="replace")
    except OSError:
        return f"--- {log}: no such file"
    return "\n".join([f"--- {log}", *text.splitlines()[-lines:]])
