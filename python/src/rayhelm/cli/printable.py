"""Control characters in texts of files, escaped where they are printed."""

import codecs
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any, TextIO

from rayhelm.deploy.control_characters import escape_controls

__all__ = ["escape_output"]

_UNENCODABLE = "rayhelm.escape"


def _escape_unencodable(error: UnicodeError) -> tuple[str, int]:
    """Escape as JSON does what the encoding of a terminal lacks, instead of a UnicodeEncodeError."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)), error.end


codecs.register_error(_UNENCODABLE, _escape_unencodable)


@contextmanager
def escape_output() -> Iterator[None]:
    """Escape what is printed to standard output and standard error meanwhile."""
    streams = sys.stdout, sys.stderr
    for stream in streams:
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors=_UNENCODABLE)
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
