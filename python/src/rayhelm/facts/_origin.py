"""Source of a config.json, for problems with file, line and key."""

import reprlib
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from rayhelm.errors import Fix, FleetError, Problem

__all__ = ["OWN_FILE", "Origin", "line_of", "shown"]

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

OWN_FILE = Fix.advice("use the unchanged file of the model's publisher")

_shorten = reprlib.Repr()
_shorten.maxstring = _shorten.maxother = 80


@dataclass(frozen=True)
class Origin:
    """A file or URL, and its text; the text is empty if the keys were not read from one."""

    file: str
    text: str = field(default="", repr=False)

    def problem(self, keys: tuple[str, ...], message: str, fix: Fix | None = None) -> FleetError:
        """`fix` without a path is for the key itself."""
        line = line_of(self.text, keys) if self.text and keys else None
        path = ".".join(keys)
        fix = OWN_FILE if fix is None else fix if fix.is_advice or fix.path or fix.command else replace(fix, path=path)
        return FleetError(Problem(message, path, self.file, line, fix))


def line_of(text: str, keys: tuple[int | str, ...]) -> int | None:
    """Return the line (from 1) of the innermost of `keys` that exists; None if the first one does not exist."""
    try:
        node, line = yaml.compose(text, Loader=_Loader), None
    except (yaml.YAMLError, RecursionError):
        return None  # JSON that YAML cannot parse: surrogates, very deep nesting
    for key in keys:
        if not isinstance(node, yaml.MappingNode):
            break
        found = next(((k, v) for k, v in node.value if k.value == key), None)
        if found is None:
            break
        line, node = found[0].start_mark.line + 1, found[1]
    return line


def shown(value: Any) -> str:
    """Return the text of a value for a message: at most one line, without control characters."""
    return _shorten.repr(value)
