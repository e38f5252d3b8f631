"""From a file to a checked Fleet; every problem with file, line, cause and fix, all of them at once."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.facts.fleet_folder import find_outside_reason
from rayhelm.fleet import yaml_nodes
from rayhelm.fleet.base import short
from rayhelm.fleet.canary_load import share_load
from rayhelm.fleet.checks import check
from rayhelm.fleet.document import Document, read_document
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.measurements import FleetMeasurements, load_measurements
from rayhelm.fleet.merge_patch import apply_change
from rayhelm.fleet.translate import translate_errors

__all__ = ["LoadedFleet", "build_outside_problem", "load_fleet", "parse_fleet"]


@dataclass(frozen=True)
class LoadedFleet:
    """A fleet and the document it was read from, for errors that are found later, and for the same fleet changed."""

    fleet: Fleet
    document: Document
    measured: FleetMeasurements | None = None
    """Measurements of the file that the key `measurements` names."""

    @property
    def file(self) -> str:
        return self.document.file

    @property
    def folder(self) -> Path:
        """Folder of the fleet file, below which the files that it names are."""
        return Path(self.file).parent

    @property
    def data(self) -> Mapping[str, Any]:
        """Keys and values of the file, as they are written."""
        data: Mapping[str, Any] = self.document.data
        return data

    def change(self, *changes: Mapping[str, Any]) -> "LoadedFleet":
        """Return the fleet with merge patches applied; its problems have the lines of this one. Raises FleetError."""
        data = reduce(apply_change, changes, self.data)
        return replace(parse_fleet(replace(self.document, data=data)), measured=self.measured)

    def locate(self, problem: Problem) -> Problem:
        """Add file and line to a problem of `problem_at`; any other stays as it is."""
        return self.document.locate(problem)

    def line(self, path: yaml_nodes.Path) -> int | None:
        """Return the line of the nearest key at or above a path."""
        return self.document.line(path)

    def joined(self) -> AbstractContextManager[None]:
        """Add file and line to the problems of a FleetError of the block: each once, sorted by line."""
        return self.document.joined()


def load_fleet(path: Path, measured: Path | None = None) -> LoadedFleet:
    """Read and check the fleet file at `path`, and its measurements. Raises FleetError.

    `measured`: a file in place of the one that the fleet file names."""
    loaded = parse_fleet(read_document(path))
    if measured:
        return replace(loaded, measured=load_measurements(measured))
    if not loaded.fleet.measurements:
        return loaded
    if reason := find_outside_reason(path.parent, loaded.fleet.measurements):
        raise FleetError(build_outside_problem(loaded, reason))
    named = path.parent / loaded.fleet.measurements
    try:
        return replace(loaded, measured=load_measurements(named))
    except FleetError as error:
        if named.is_file():
            raise
        # The file is missing, so the key that names it is the place to look at.
        found = [(f"{named}: {problem.message}", problem.fix) for problem in error.problems]
        raise FleetError([loaded.document.problem(("measurements",), *each) for each in found]) from None


def build_outside_problem(loaded: LoadedFleet, reason: str) -> Problem:
    """The problem of `measurements` that are not below the folder of the fleet file."""
    name = loaded.fleet.measurements or ""
    fix = Fix("", Path(name).name or "measurements.yaml", "the file is below that folder; copy it there")
    return loaded.document.problem(("measurements",), f"`{short(name)}` {reason}", fix)


def parse_fleet(document: Document) -> LoadedFleet:
    """Check a document. The maps of the fleet are sorted by key, so that the order of keys in the file changes nothing:
    models of equal size and pools of equal rank are taken by name. Raises FleetError."""
    try:
        fleet = Fleet.model_validate(_sort_keys(document.data))
    except ValidationError as error:
        raise FleetError(translate_errors(error, document, Fleet)) from None
    if problems := check(fleet, document):
        raise FleetError(sorted(map(document.locate, problems), key=lambda problem: problem.line or 0))
    return LoadedFleet(share_load(fleet), document)


def _sort_keys(data: Any) -> Any:
    """Sort the keys of maps; the order of a list has a meaning and stays."""
    if isinstance(data, dict):
        return {key: _sort_keys(value) for key, value in sorted(data.items())}
    if isinstance(data, list):
        return [_sort_keys(item) for item in data]
    return data
