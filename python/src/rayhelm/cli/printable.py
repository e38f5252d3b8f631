"""Control characters in texts of files, escaped where they are printed: a terminal would obey them."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

__all__ = ["escape_controls", "escape_output"]

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x80-\x9f]|\r(?!\n)")


def escape_controls(text: str) -> str:
    """Write each control character but tabs and ends of lines as YAML spells it in double quotes."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


@contextmanager
def escape_output() -> Iterator[None]:
    """Escape what is printed to standard output and standard error meanwhile."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (stream and _Escaping(stream) for stream in streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


class _Escaping:
    """A text stream that escapes control characters."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(escape_controls(text))
        return len(text)

    @property
    def rich_proxied_file(self) -> TextIO:
        """Where rich writes, with its own control characters. Consoles of `output` escape those of texts."""
        return self._stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
