"""From a file to a checked Fleet; every problem with file, line, cause and fix, all of them at once."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from rayhelm.errors import FleetError
from rayhelm.spec.checks import check
from rayhelm.spec.document import Document, read_document
from rayhelm.spec.fleet import Fleet
from rayhelm.spec.translate import translate_errors

__all__ = ["LoadedFleet", "load_fleet"]


@dataclass(frozen=True)
class LoadedFleet:
    """A fleet and the document it was read from, for errors that are found later."""

    fleet: Fleet
    document: Document


def load_fleet(path: Path) -> LoadedFleet:
    """Read and check the fleet file at `path`. Raises FleetError."""
    return parse_fleet(read_document(path))


def parse_fleet(document: Document) -> LoadedFleet:
    try:
        fleet = Fleet.model_validate(document.data)
    except ValidationError as error:
        raise FleetError(translate_errors(error, document, Fleet)) from None
    if problems := check(fleet, document):
        raise FleetError(problems)
    return LoadedFleet(fleet, document)
