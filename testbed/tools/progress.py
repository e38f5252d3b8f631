"""Print the progress of a long command: a live line on a terminal, a line every 30 s in a log."""

import sys
import threading
import time
from types import TracebackType
from typing import Self

__all__ = ["Progress"]

LIVE, SPARSE = 1.0, 30.0
"""Seconds between two lines of a log."""


class Progress:
    """Progress lines during a command. `doing` can be changed at any time."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.doing = ""
        self.begin = time.monotonic()
        self._done = threading.Event()
        self._live = sys.stdout.isatty()
        self._thread = threading.Thread(target=self._print_progress, daemon=True)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.begin

    def __enter__(self) -> Self:
        print(f"==> {self.title}", flush=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()
        if self._live:
            print("\r\033[K", end="", flush=True)

    def _print_progress(self) -> None:
        while not self._done.wait(LIVE if self._live else SPARSE):
            line = f"    {self.seconds:.0f} s{', ' if self.doing else ''}{self.doing}"
            print(f"\r\033[K{line[:78]}" if self._live else line, end="" if self._live else "\n", flush=True)
