"""From YAML's nodes to plain data, with the line of every key.

YAML 1.2's plain types only: `yes`, `on` and `1:30` stay text, so nothing turns into a boolean or a number unasked.
"""

import re
from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any

import yaml

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.fleet.base import short, spell

__all__ = ["Builder", "Loader", "Path", "dotted", "dotted_whole"]

MAX_NODES = 100_000
"""Bounds what aliases can unfold to."""
MAX_DEPTH = 32
"""A fleet nests seven deep; libyaml's own composer overflows the stack at some ten thousand."""
MAX_DIGITS = 18
"""No count in a fleet is longer."""

Path = tuple[str | int, ...]

_PLAIN = {
    "bool": (re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), "tTfF"),
    "int": (re.compile(r"^[-+]?[0-9]+$"), "-+0123456789"),
    "float": (re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$"), "-+.0123456789"),
    "null": (re.compile(r"^(?:~|null|Null|NULL|)$"), "~nN"),
    "merge": (re.compile(r"^<<$"), "<"),
}
"""Plain scalars that are no text, and how they begin."""


def dotted(path: Path) -> str:
    """The path for a message: long names are cut."""
    return _join(path, short)


def dotted_whole(path: Path) -> str:
    """The path for a fix, which a program follows."""
    return _join(path, spell)


def _join(path: Path, show: Callable[[object], str]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{show(part)}" if text else show(part)
    return text


class Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """SafeLoader with YAML 1.2's core types in place of 1.1's."""

    yaml_implicit_resolvers: dict[str, Any] = {}


def _register() -> None:
    for kind, (pattern, first) in _PLAIN.items():
        begins = [*first, ""] if kind == "null" else list(first)
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", pattern, begins)


_register()


class Builder:
    """Converts nodes to plain data with their lines. Refuses what the conversion would lose."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[Path, int] = {}
        self.problems: list[Problem] = []
        self._count = 0

    def compose(self, text: str) -> list[yaml.Node]:
        """The documents in `text`. Raises FleetError, and yaml.YAMLError where it is not YAML."""
        depth = 0
        for event in yaml.parse(text, Loader=Loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise FleetError(self._too_deep(event.start_mark.line + 1 if event.start_mark else None))
        return list(yaml.compose_all(text, Loader=Loader))

    def build(self, node: yaml.Node, path: Path) -> Any:
        self._count += 1
        line = node.start_mark.line + 1
        if self._count > MAX_NODES:
            many = f"aliases unfold to more than {MAX_NODES:,} values"
            raise FleetError(Problem(many, "", self.file, line, Fix.advice("write the values out, without `*`")))
        if len(path) > MAX_DEPTH:
            raise FleetError(self._too_deep(line))
        self.lines.setdefault(path, line)
        if isinstance(node, yaml.MappingNode):
            return dict(self._items(node, path))
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _items(self, node: yaml.MappingNode, path: Path) -> Iterator[tuple[str, Any]]:
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._problem(path, line, "a key must be plain text", Fix.advice("write it like `key: value`"))
                continue
            key = key_node.value
            if key_node.tag == "tag:yaml.org,2002:merge":
                fix = Fix.advice("write the keys out, or use one alias per value")
                self._problem(path, line, "merge keys (`<<`) are not supported", fix)
                continue
            if key in first:
                message = f"key `{short(key)}` is a duplicate; it is first in line {first[key]}"
                self._problem((*path, key), line, message, Fix.removal(dotted((*path, key)), "one of the two"))
                continue
            first[key] = line
            self.lines[(*path, key)] = line
            yield key, self.build(value_node, (*path, key))

    def _scalar(self, node: yaml.Node, path: Path) -> Any:
        value, kind, line = node.value, node.tag.rsplit(":", 1)[-1], node.start_mark.line + 1
        if kind == "str":
            return value
        if kind not in _PLAIN:
            self._problem(path, line, f"tag `{short(node.tag)}` is not supported", Fix.advice("remove the tag"))
        elif not _PLAIN[kind][0].match(value):
            self._problem(path, line, f"`{short(value)}` is no {kind}, as its tag says", Fix.advice("remove the tag"))
        elif kind == "bool":
            return value.lower() == "true"
        elif kind in ("int", "float"):
            return self._number(value, kind, path, line)
        return None

    def _number(self, value: str, kind: str, path: Path, line: int) -> int | float | None:
        if kind == "int" and len(value) <= MAX_DIGITS:
            return int(value)
        if kind == "float" and isfinite(number := float(value)):
            return number
        message = f"`{short(value)}` is larger than any number of a fleet"
        fix = Fix.advice(f"write at most {MAX_DIGITS} digits; text in quotes is no number")
        self._problem(path, line, message, fix)
        return None

    def _too_deep(self, line: int | None) -> Problem:
        message = f"nests deeper than {MAX_DEPTH} levels, or an alias stands inside of what it names"
        fix = Fix.advice("write the values out, without `*`, and close the brackets")
        return Problem(message, "", self.file, line, fix)

    def _problem(self, path: Path, line: int, message: str, fix: Fix) -> None:
        self.problems.append(Problem(message, dotted(path), self.file, line, fix))
