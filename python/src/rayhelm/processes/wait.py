"""Waits until something is so, as long as those who can make it so are alive."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from rayhelm.errors import RayhelmError
from rayhelm.processes.run import Process

__all__ = ["Died", "TimedOut", "tail", "wait_until"]

T = TypeVar("T")


class Died(RayhelmError):
    """A process ended before it was ready; the message carries the end of its log."""


class TimedOut(RayhelmError):
    """It took longer than it may."""


def wait_until(
    ready: Callable[[], T | None],
    *,
    what: str,
    timeout: float,
    needs: Sequence[Process] = (),
    poll: float = 0.2,
) -> T:
    """What `ready` answers, as soon as it is not None, asked every `poll` seconds for at most `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        answer = ready()
        if answer is not None:
            return answer
        for process in needs:
            if not process.alive:
                raise Died(f"{what}: a process ended before it was ready\n{tail(process.log)}")
        if time.monotonic() > deadline:
            logs = "\n".join(tail(process.log) for process in needs)
            raise TimedOut(f"{what}: not ready after {timeout:.0f} s\n{logs}".rstrip())
        time.sleep(poll)


def tail(log: Path, lines: int = 20) -> str:
    """The last lines of a log, under its name."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 16_384))
            text = file.read().decode(errors="replace")
    except OSError:
        return f"--- {log}: not there"
    return "\n".join([f"--- {log}", *text.splitlines()[-lines:]])
