"""Kubernetes objects in YAML files, with the line of each of their fields."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rayhelm.check.admission.evaluate import PolicyViolation
from rayhelm.check.admission.pods import Path as FieldPath
from rayhelm.errors import FleetError, Problem
from rayhelm.fleet.document import read_text
from rayhelm.fleet.yaml_nodes import Builder, dotted

__all__ = ["Manifest", "are_manifests", "read_manifests"]

BLOCKS = ("|", "|-", "|+")


@dataclass(frozen=True)
class Manifest:
    """One object, and its position in a file."""

    item: Mapping[str, Any]
    file: str
    lines: Mapping[FieldPath, int]
    text: tuple[str, ...]
    """Lines of the file."""

    def problem(self, violation: PolicyViolation, within: FieldPath = ()) -> Problem:
        """Build the problem of a violation, at the line of its field. `within` is the path of the checked part."""
        path = self._find_path(violation, within)
        name = f"{self.item['kind']} {self.item['metadata'].get('name', '')}"
        line = self._find_line(path, violation)
        what = violation.what or violation.message
        return Problem(f"{name}: {what}", dotted(path), self.file, line, violation.fix, violation.rule)

    def _find_path(self, violation: PolicyViolation, within: FieldPath) -> FieldPath:
        """Return the first existing field that the policy names. If several items have the field, return the one whose
        value is in the message."""
        for field in violation.fields:
            parts = field.partition(":")[0].split(".")
            found = [
                path
                for path in self.lines
                if path[: len(within)] == within and _list_keys(path)[-len(parts) :] == parts
            ]
            if found:
                named = (path for path in found if str(self._get_value(path)) in violation.message)
                return next(named, found[0])
        return within

    def _find_line(self, path: FieldPath, violation: PolicyViolation) -> int:
        """Return the line of a field. In a block of text, it is the line of the block that the policy names."""
        line = next(self.lines[path[:end]] for end in range(len(path), -1, -1) if path[:end] in self.lines)
        field = next(
            (
                field
                for field in violation.fields
                if ":" in field and _list_keys(path)[-1:] == [field.partition(":")[0]]
            ),
            "",
        )
        value = self._get_value(path) if field else None
        if not isinstance(value, str) or not self.text[line - 1].rstrip().endswith(BLOCKS):
            return line
        rows = value.splitlines()
        wanted = [each.partition(":")[2] for each in violation.fields if ":" in each]
        hits = next((hits for word in wanted if (hits := [at for at, row in enumerate(rows) if word in row])), [])
        named = [at for at, row in enumerate(rows) if '"model_id": "' in row and row.split('"')[3] in violation.message]
        best = min(hits, key=lambda at: min((abs(at - other) for other in named), default=0), default=-1)
        return line + 1 + best

    def _get_value(self, path: FieldPath) -> Any:
        value: Any = self.item
        for part in path:
            value = value[part]
        return value


def are_manifests(path: Path) -> bool:
    """Return whether a path is a file of Kubernetes objects, or a folder with one, and not a fleet."""
    return any(_is_manifest(file) for file in _list_files(path))


def read_manifests(path: Path) -> list[Manifest]:
    """Return all objects of a file, or of the files of a folder. Raises FleetError with file and line."""
    return [manifest for file in _list_files(path) if _is_manifest(file) for manifest in _read(file)]


def _list_files(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.suffix in (".yaml", ".yml")) if path.is_dir() else [path]


def _is_manifest(file: Path) -> bool:
    try:
        starts = {line.partition(":")[0] for line in file.read_text(errors="replace").splitlines()}
    except OSError:
        return False
    return {"apiVersion", "kind"} <= starts and "fleet" not in starts


def _read(file: Path) -> Iterator[Manifest]:
    text = read_text(file)
    lines = tuple(text.splitlines())
    try:
        nodes = Builder(str(file)).compose(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise FleetError(Problem(f"not valid YAML: {error.problem}", "", str(file), line)) from None
    for node in nodes:
        builder = Builder(str(file))
        item = builder.build(node, ())
        if builder.problems:
            raise FleetError(builder.problems)
        yield from _list_objects(item, Manifest(item, str(file), builder.lines, lines))


def _list_objects(item: Any, whole: Manifest) -> Iterator[Manifest]:
    if not isinstance(item, dict):
        return
    if str(item.get("kind", "")).endswith("List") and isinstance(item.get("items"), list):
        for at, each in enumerate(item["items"]):
            below = {path[2:]: line for path, line in whole.lines.items() if path[:2] == ("items", at)}
            yield from _list_objects(each, Manifest(each, whole.file, below, whole.text))
    elif all(isinstance(item.get(key), kind) for key, kind in (("apiVersion", str), ("kind", str), ("metadata", dict))):
        yield whole
    elif item:
        fix = "apiVersion: ray.io/v1\nkind: RayService\nmetadata: {name: chat}"
        raise FleetError(Problem("not an object of Kubernetes", "", whole.file, whole.lines.get(()), fix))


def _list_keys(path: FieldPath) -> list[str]:
    return [part for part in path if isinstance(part, str)]
