"""A YAML document that remembers the line of every key.

YAML 1.2's plain types only: `yes`, `on` and `1:30` stay text, so nothing turns into a boolean or a number unasked.
Duplicate keys, several documents, alias bombs and oversized files are refused, each with its line.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from rayhelm.errors import FleetError, Problem

__all__ = ["Document", "read_document"]

MAX_BYTES = 1 << 20
"""A fleet file is written by people; one over 1 MiB is something else."""
MAX_NODES = 100_000
"""Bounds what aliases can unfold to."""

Path_ = tuple[str | int, ...]


@dataclass(frozen=True)
class Document:
    """Parsed YAML and where each of its keys stands."""

    file: str
    data: Any
    lines: dict[Path_, int] = field(default_factory=dict)
    """1-based line of the key (or list item) at each path."""

    def line(self, path: Path_) -> int | None:
        """Line of the nearest key at or above `path`."""
        for end in range(len(path), -1, -1):
            if (line := self.lines.get(path[:end])) is not None:
                return line
        return None

    def problem(self, path: Path_, message: str, mend: str = "", rule: str = "") -> Problem:
        return Problem(message, dotted(path), self.file, self.line(path), mend, rule)


def dotted(path: Path_) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read_document(path: Path) -> Document:
    """Read one YAML mapping from `path`. Raises FleetError with file and line."""
    return parse_document(_read_text(path), str(path))


def parse_document(text: str, file: str) -> Document:
    try:
        nodes = list(yaml.compose_all(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = ", ".join(part for part in (error.context, error.problem) if part)
        raise FleetError(Problem(f"not valid YAML: {what}", "", file, mark.line + 1 if mark else None)) from None
    except yaml.YAMLError as error:
        raise FleetError(Problem(f"not valid YAML: {error}", "", file)) from None
    if not nodes:
        raise FleetError(Problem("the file is empty", "", file, None, _SMALLEST))
    if len(nodes) > 1:
        line = nodes[1].start_mark.line + 1
        raise FleetError(Problem("several documents in one file; a fleet is one", "", file, line, "remove the `---`"))
    if not isinstance(nodes[0], yaml.MappingNode):
        raise FleetError(Problem("not a mapping of keys to values", "", file, 1, _SMALLEST))
    builder = _Builder(file)
    data = builder.build(nodes[0], ())
    if builder.problems:
        raise FleetError(builder.problems)
    return Document(file, data, builder.lines)


def _read_text(path: Path) -> str:
    try:
        if path.is_dir():
            raise FleetError(Problem("is a directory; name the fleet file in it", "", str(path)))
        if (size := path.stat().st_size) > MAX_BYTES:
            raise FleetError(
                Problem(f"{size / 2**20:.1f} MiB: a fleet file is at most {MAX_BYTES >> 20} MiB", "", str(path))
            )
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        mend = "\n".join(str(near) for near in sorted(Path().glob("values/*/fleet.yaml"))[:5])
        raise FleetError(Problem("no such file", "", str(path), None, mend and f"there are:\n{mend}")) from None
    except UnicodeDecodeError as error:
        raise FleetError(Problem(f"not UTF-8 text (byte {error.start})", "", str(path))) from None
    except OSError as error:
        raise FleetError(Problem(f"cannot be read: {error.strerror}", "", str(path))) from None


class _Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """SafeLoader with YAML 1.2's core types in place of 1.1's."""

    yaml_implicit_resolvers: dict[str, Any] = {}


def _resolvers() -> Iterator[tuple[str, str, list[str]]]:
    yield "bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")
    yield "int", r"^[-+]?[0-9]+$", list("-+0123456789")
    yield "float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", list("-+.0123456789")
    yield "null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]
    yield "merge", r"^<<$", ["<"]


def _register() -> None:
    import re

    for kind, pattern, first in _resolvers():
        _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(pattern), first)


_register()


class _Builder:
    """Turns nodes into plain data, keeping lines and refusing what would be lost in silence."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[Path_, int] = {}
        self.problems: list[Problem] = []
        self._count = 0

    def build(self, node: yaml.Node, path: Path_) -> Any:
        self._count += 1
        if self._count > MAX_NODES:
            raise FleetError(
                Problem("aliases unfold to more than 100,000 values", "", self.file, node.start_mark.line + 1)
            )
        self.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: Path_) -> dict[str, Any]:
        data: dict[str, Any] = {}
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._problem(path, line, "a key must be plain text")
                continue
            key = key_node.value
            if key_node.tag == "tag:yaml.org,2002:merge":
                self._problem(
                    path, line, "merge keys (`<<`) are not supported", "write the keys out, or use one alias per value"
                )
                continue
            if key in first:
                self._problem(
                    (*path, key), line, f"key `{key}` stands twice, first in line {first[key]}", "keep one of the two"
                )
                continue
            first[key] = line
            self.lines[(*path, key)] = line
            data[key] = self.build(value_node, (*path, key))
        return data

    def _scalar(self, node: yaml.Node, path: Path_) -> Any:
        value, kind = node.value, node.tag.rsplit(":", 1)[-1]
        if kind == "int":
            return int(value)
        if kind == "float":
            return float(value)
        if kind == "bool":
            return value.lower() == "true"
        if kind == "null":
            return None
        if kind != "str":
            self._problem(path, node.start_mark.line + 1, f"tag `{node.tag}` is not supported")
        return value

    def _problem(self, path: Path_, line: int, message: str, mend: str = "") -> None:
        self.problems.append(Problem(message, dotted(path), self.file, line, mend))


_SMALLEST = """\
fleet: mine
pools:
  gpu: {gpu: L4-24GB, nodes: 1, gpusPerNode: 1}
models:
  chat: {source: Qwen/Qwen2.5-7B-Instruct, task: chat, context: 8192}
"""
