"""Read catalog files on first use. Each file has one record and is named after its id."""

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.facts._origin import line_of, shown
from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.mig import MigTable
from rayhelm.facts.model import Checkpoint
from rayhelm.facts.network import NetworkKind

__all__ = ["CatalogFolder", "parse_record", "read_record", "stem"]

Record = TypeVar("Record", GpuKind, MigTable, Checkpoint, NetworkKind)

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def stem(name: str) -> str:
    """Return the file name of an entry, without suffix. Case, spaces and underscores do not matter."""
    return "-".join(name.lower().replace("_", " ").split()).replace("/", "--")


class CatalogFolder(Generic[Record]):
    """All entries of one kind."""

    def __init__(self, folder: Path, kind: type[Record], label: str) -> None:
        """`label`: noun for one entry, used in messages."""
        self._folder, self._label = folder, label
        self._kind: type[Record] = kind
        self._read: dict[Path, Record] = {}
        self._added: tuple[Record, ...] = ()
        self._change: Callable[[Record], Record] | None = None

    def map(self, change: Callable[[Record], Record]) -> "CatalogFolder[Record]":
        """Return a folder whose entries are changed when they are read."""
        found: CatalogFolder[Record] = CatalogFolder(self._folder, self._kind, self._label)
        found._change, found._added = change, tuple(map(change, self._added))
        return found

    def get(self, name: str) -> Record:
        """Return an entry by id, by alias or, for a model, by the last part of its id."""
        if entry := self.find(name):
            return entry
        raise FleetError(self.build_unknown_problem(name))

    def find(self, name: str) -> Record | None:
        """Return the same; None for an unknown name."""
        wanted = stem(name)
        path = self._files.get(wanted)
        return self._read_entry(path) if path else self._by_name.get(wanted)

    def all(self) -> tuple[Record, ...]:
        return self._entries + self._added

    def add(self, entries: Sequence[Record]) -> "CatalogFolder[Record]":
        """Return a folder that has these entries too. It reads no file again."""
        found: CatalogFolder[Record] = CatalogFolder(self._folder, self._kind, self._label)
        found._read, found._added, found._change = self._read, self._added + tuple(entries), self._change
        return found

    @cached_property
    def _entries(self) -> tuple[Record, ...]:
        return tuple(self._read_entry(path) for path in self._files.values())

    def _read_entry(self, path: Path) -> Record:
        if path not in self._read:
            entry = read_record(path, self._kind)
            self._read[path] = self._change(entry) if self._change else entry
        return self._read[path]

    @cached_property
    def _files(self) -> dict[str, Path]:
        """Files by stem. Names of users are looked up here and never become paths."""
        return {path.stem: path for path in sorted(self._folder.glob("*.yaml"))}

    @cached_property
    def _by_name(self) -> dict[str, Record]:
        return {stem(name): entry for entry in self.all() for name in names(entry)}

    def build_unknown_problem(self, name: str) -> Problem:
        spelled = {stem(known): known for entry in self.all() for known in names(entry)}
        found = difflib.get_close_matches(stem(name), spelled, n=3, cutoff=0.55)
        # A fix keeps the number: `1 Gbit/s` is more like `10gbe` than like `ethernet-1g`.
        numbers = re.findall(r"\d+", name)
        same = [one for one in spelled if numbers and re.findall(r"\d+", one) == numbers]
        found = difflib.get_close_matches(stem(name), same, n=3, cutoff=0.3) or found
        # One name of each entry: an id and its alias are no choice.
        by_entry: dict[str, str] = {}
        for one in found:
            by_entry.setdefault(self.get(spelled[one]).id, spelled[one])
        near = list(by_entry.values())
        message = f"unknown {self._label} {shown(name)}"
        if not near:
            why = f"an example; `rayhelm catalog {self._folder.name}` lists all"
            near = [entry.id for entry in self.all()[:3]]
        else:
            why = f"the nearest name; `rayhelm catalog {self._folder.name}` lists all"
        first, *others = near
        return Problem(message, fix=Fix(value=first, why=why), alternatives=tuple(Fix(value=other) for other in others))


def names(entry: GpuKind | MigTable | Checkpoint | NetworkKind) -> Iterator[str]:
    """Yield every name of an entry."""
    yield entry.id
    yield from entry.aliases
    if "/" in entry.id:
        yield entry.id.rpartition("/")[2]


def read_record(path: Path, kind: type[Record]) -> Record:
    """Read and check one file. Raises FleetError with file, line and key."""
    text = path.read_text(encoding="utf-8")
    entry = parse_record(text, path, kind)
    if stem(entry.id) != path.stem:
        raise FleetError(
            _build_problem(path, text, ("id",), f"the file of {entry.id!r} is named {stem(entry.id)}.yaml")
        )
    return entry


def parse_record(text: str, path: Path, kind: type[Record], loader: Any = _Loader) -> Record:
    """Check the text of a file. Raises FleetError with file, line and key. Files of users need `yaml.SafeLoader`: deep
    nesting ends the faster loader with a segmentation fault, and this one with RecursionError."""
    try:
        return kind.model_validate(yaml.load(text, Loader=loader))
    except yaml.YAMLError as error:
        raise FleetError(_build_yaml_problem(path, error)) from None
    except ValidationError as error:
        raise FleetError([_build_key_problem(path, text, found) for found in error.errors()]) from None


def _build_key_problem(path: Path, text: str, found: ErrorDetails) -> Problem:
    """Name a key that the model has; of an unknown one only the line."""
    problem = _build_problem(path, text, found["loc"], found["msg"])
    if found["type"] != "extra_forbidden":
        return problem
    return replace(problem, message="an unknown key", path=".".join(map(str, found["loc"][:-1])))


def _build_yaml_problem(path: Path, error: yaml.YAMLError) -> Problem:
    """Name the line without its text: messages have nothing of a file that may be something else."""
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    return Problem("is not YAML", file=str(path), line=mark.line + 1 if mark else None)


def _build_problem(path: Path, text: str, keys: tuple[int | str, ...], message: str) -> Problem:
    return Problem(message, path=".".join(map(str, keys)), file=str(path), line=line_of(text, keys) or 1)
