"""Control characters in texts of files, escaped: a terminal would obey them, and a page would hide them."""

import re

__all__ = ["escape_controls"]

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x80-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")
"""With those that change the direction of the text."""


def escape_controls(text: str) -> str:
    """Write each control character but tabs and ends of lines as YAML spells it in double quotes; those that JSON may
    have in a string as JSON spells them too."""
    return _CONTROL.sub(lambda found: _escape(found[0]), text)


def _escape(character: str) -> str:
    return f"\\x{ord(character):02x}" if ord(character) < 0x80 else f"\\u{ord(character):04x}"
