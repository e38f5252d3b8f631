"""Renamed keys, read from `data/renamed/<where>.yaml`. The error of an old key names the new one."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from rayhelm.facts.closed import Closed

__all__ = ["SINCE", "Renamed", "renamed"]

SINCE = "0.2.0"
"""Version that has the new names."""


class Renamed(Closed):
    """One row of a table. `*` in a path stands for any name."""

    old: str
    """Path of the key up to version 0.1: `tenants.*.pins`."""
    new: str
    """Path of the key now: `tenants.*.pinnedVersions`."""
    fix: str = ""
    """YAML to write instead, if the form of the value changed too. Empty: the old value with the new key."""

    def found(self, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield each old and new path that the values have, with names in place of `*`."""
        yield from _find(values, self.old.split("."), (), self.new)


@cache
def renamed(where: str) -> tuple[Renamed, ...]:
    """Return the rows of a chart, or of `fleet`."""
    file = files("rayhelm").joinpath(f"data/renamed/{where}.yaml")
    rows = yaml.safe_load(file.read_text()) if file.is_file() else None
    return tuple(Renamed.model_validate(row) for row in rows or ())


def _find(node: Any, parts: list[str], above: tuple[str, ...], new: str) -> Iterator[tuple[str, str]]:
    if not parts:
        yield ".".join(above), new
    elif isinstance(node, Mapping):
        for name in list(node) if parts[0] == "*" else [parts[0]] if parts[0] in node else []:
            below = new.replace("*", name, 1) if parts[0] == "*" else new
            yield from _find(node[name], parts[1:], (*above, name), below)
