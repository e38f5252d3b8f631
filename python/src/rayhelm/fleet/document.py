"""A YAML document that remembers the line of every key.

Duplicate keys, several documents, alias bombs and oversized files are refused, each with its line.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.fleet import yaml_nodes
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.yaml_nodes import Builder, dotted, dotted_whole

__all__ = ["Document", "parse_document", "read_document", "read_text"]

MAX_BYTES = 8 << 20
"""10,000 models with many settings take 6 MiB; a larger file is something else."""


@dataclass(frozen=True)
class Document:
    """Parsed YAML, with the line of each key."""

    file: str
    data: Any
    lines: dict[yaml_nodes.Path, int] = field(default_factory=dict)
    """1-based line of the key (or list item) at each path."""

    def line(self, path: yaml_nodes.Path) -> int | None:
        """Line of the nearest key at or above `path`."""
        for end in range(len(path), -1, -1):
            if (line := self.lines.get(path[:end])) is not None:
                return line
        return None

    def problem(
        self,
        path: yaml_nodes.Path,
        message: str,
        fix: Fix | str = "",
        rule: str = "",
        alternatives: Sequence[Fix] = (),
    ) -> Problem:
        """A problem of the key at `path`, with its line. Paths of fixes are relative to it."""
        return self.locate(problem_at(path, message, fix, rule, alternatives))

    def locate(self, problem: Problem) -> Problem:
        """Add file, line, and what the file has, to a problem of `problem_at`; any other stays as it is."""
        if problem.place is None:
            return problem
        path = problem.place
        fix = self._complete(path, problem.fix) if isinstance(problem.fix, Fix) else problem.fix
        others = tuple(self._complete(path, other) for other in problem.alternatives)
        return Problem(problem.message, dotted(path), self.file, self.line(path), fix, problem.rule, others)

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Add file and line to the problems of a FleetError of the block: each once, sorted by line."""
        try:
            yield
        except FleetError as error:
            found: list[Problem] = []
            for problem in map(self.locate, error.problems):
                found += [] if problem in found else [problem]
            raise FleetError(sorted(found, key=lambda problem: problem.line or 0)) from None

    def value(self, path: yaml_nodes.Path) -> Any:
        """Return the value at `path`. Raises KeyError or IndexError."""
        here = self.data
        for step in path:
            here = here[step]
        return here

    def _find_value(self, path: yaml_nodes.Path) -> Any:
        """Return the value at `path`; None if the file has none there."""
        try:
            return self.value(path)
        except (KeyError, IndexError, TypeError):
            return None

    def _complete(self, path: yaml_nodes.Path, fix: Fix) -> Fix:
        if fix.command or fix.is_advice:
            return fix
        if not fix.path and path and isinstance(path[-1], int):
            return self._complete_list(path[:-1], path[-1], fix)
        old = None if fix.replaces is None else _absolute(path, fix.replaces)
        absolute = _absolute(path, fix.path)
        value = fix.rewrite.change(self._find_value(fix.rewrite.place)) if fix.rewrite else fix.value
        return replace(fix, path=absolute, value=value, replaces=old, steps=_list_steps(path, fix.path), rewrite=None)

    def _complete_list(self, path: yaml_nodes.Path, index: int, fix: Fix) -> Fix:
        """The whole list, because an item alone cannot be pasted behind the key."""
        items = list(self.value(path))
        items[index : index + 1] = [] if fix.is_removal else [fix.value]
        return Fix(dotted_whole(path), items, fix.why)


def _list_steps(path: yaml_nodes.Path, relative: str) -> tuple[str, ...]:
    """Return the names on the way to `relative` below `path`, if a name of `path` has dots."""
    if relative.startswith("/") or not any("." in str(step) for step in path):
        return ()
    while relative == ".." or relative.startswith("../"):
        path, relative = path[:-1], relative[3:]
    return (*(str(step) for step in path if not isinstance(step, int)), *(relative.split(".") if relative else ()))


def _absolute(path: yaml_nodes.Path, relative: str) -> str:
    """`relative` below `path`: `context`; `..` is the level above, `../x` a key beside it, `/x` one at the top."""
    if relative.startswith("/"):
        return relative[1:]
    while relative == ".." or relative.startswith("../"):
        path, relative = path[:-1], relative[3:]
    return ".".join(part for part in (dotted_whole(path), relative) if part)


def read_document(path: Path) -> Document:
    """Read one YAML mapping from `path`. Raises FleetError with file and line."""
    return parse_document(read_text(path), str(path))


def parse_document(text: str, file: str) -> Document:
    builder = Builder(file)
    try:
        nodes = builder.compose(text)
    except yaml.YAMLError as error:
        raise FleetError(_not_yaml(error, text, file)) from None
    if not nodes:
        raise FleetError(Problem("the file is empty", "", file, None, _SMALLEST))
    if len(nodes) > 1:
        line = nodes[1].start_mark.line + 1
        fix = Fix.advice("remove the `---`")
        raise FleetError(Problem("the file has several documents; a fleet file has one", "", file, line, fix))
    if not isinstance(nodes[0], yaml.MappingNode):
        raise FleetError(Problem("not a map of keys to values", "", file, 1, _SMALLEST))
    data = builder.build(nodes[0], ())
    if builder.problems:
        raise FleetError(builder.problems)
    return Document(file, data, builder.lines)


def _not_yaml(error: yaml.YAMLError, text: str, file: str) -> Problem:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        what = ", ".join(part for part in (error.context, error.problem) if part)
        tab = mark and "\t" in "".join(text.splitlines()[mark.line : mark.line + 1])
        fix = Fix.advice("indent with spaces, never with tabs" if tab else _WELL_FORMED)
        return Problem(f"not valid YAML: {what}", "", file, mark.line + 1 if mark else None, fix)
    line = None
    if isinstance(error, yaml.reader.ReaderError):
        line = text.encode()[: error.position].count(b"\n") + 1
    fix = Fix.advice("remove it: YAML is text that can be printed")
    return Problem("not valid YAML: a control character", "", file, line, fix)


def read_text(path: Path) -> str:
    """UTF-8 text of at most 8 MiB. Raises FleetError."""
    try:
        if path.is_dir():
            raise FleetError(_is_a_folder(path))
        with path.open("rb") as file:
            read = file.read(MAX_BYTES + 1)
        if len(read) > MAX_BYTES:
            raise FleetError(_too_large(path))
        return read.decode()
    except (FileNotFoundError, NotADirectoryError):
        near = sorted(Path().glob("values/*/fleet.yaml"))[:5]
        raise FleetError(Problem(f"no such file{_list(near)}", "", str(path), None, _SMALLEST)) from None
    except UnicodeDecodeError as error:
        line = read[: error.start].count(b"\n") + 1
        encoding = "UTF-16" if read[:2] in (b"\xff\xfe", b"\xfe\xff") else "ISO-8859-1"
        fix = Fix(command=f"iconv -f {encoding} -t UTF-8 {path}", why="if it was written in that encoding")
        raise FleetError(Problem(f"not UTF-8 text (byte {error.start})", "", str(path), line, fix)) from None
    except OSError as error:
        is_closed = isinstance(error, PermissionError)
        fix = Fix(command=f"chmod u+r {path}") if is_closed else Fix.advice("name a fleet file, or its folder")
        raise FleetError(Problem(f"cannot be read: {error.strerror}", "", str(path), None, fix)) from None


def _is_a_folder(path: Path) -> Problem:
    inside = sorted(path.glob("*.y*ml"))[:5] or sorted(path.glob("*/fleet.yaml"))[:5]
    return Problem(f"the folder has no `fleet.yaml`{_list(inside)}", "", str(path), None, _SMALLEST)


def _list(files: Sequence[Path]) -> str:
    return f"; there are {', '.join(map(str, files))}" if files else ""


def _too_large(path: Path) -> Problem:
    size = f"{path.stat().st_size / 2**20:.1f} MiB: " if path.is_file() else ""
    fix = Fix(command="rayhelm schema fleet", why="prints the keys of a fleet file")
    return Problem(f"{size}a fleet file is at most {MAX_BYTES >> 20} MiB", "", str(path), 1, fix)


_WELL_FORMED = "write `key: value` with a space after the colon, close brackets and quotes, and align keys of one level"
_SMALLEST = Fix(
    value={
        "fleet": "mine",
        "pools": {"gpu": {"gpu": "L4-24GB", "nodes": 1, "gpusPerNode": 1}},
        "models": {"chat": {"source": "Qwen/Qwen2.5-7B-Instruct", "task": "chat", "context": 8192}},
    }
)
"""The smallest fleet file."""
