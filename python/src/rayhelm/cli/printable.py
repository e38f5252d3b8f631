"""Control characters in texts of files, escaped where they are printed: a terminal would obey them."""

import codecs
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any, TextIO

__all__ = ["escape_controls", "escape_output"]

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x80-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")
"""With those that change the direction of the text."""
_UNENCODABLE = "rayhelm.escape"


def escape_controls(text: str) -> str:
    """Write each control character but tabs and ends of lines as YAML spells it in double quotes; those that JSON may
    have in a string as JSON spells them too."""
    return _CONTROL.sub(lambda found: _escape(found[0]), text)


def _escape(character: str) -> str:
    return f"\\x{ord(character):02x}" if ord(character) < 0x80 else f"\\u{ord(character):04x}"


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
