"""Attempts of the fourth round: a file for each area, with what is tried and whether it held at once."""

from pathlib import Path
from typing import Any, NamedTuple

import yaml

__all__ = ["AREAS", "Attempt", "read_attempts"]

FOLDER = Path(__file__).parents[1] / "fourth_round"
AREAS = sorted(path.stem for path in FOLDER.glob("*.yaml"))


class Attempt(NamedTuple):
    """One attempt. It held at once, unless its row says `held: false`."""

    name: str
    row: dict[str, Any]

    @property
    def held(self) -> bool:
        return bool(self.row.get("held", True))

    def __str__(self) -> str:
        return self.name


def read_attempts(area: str, kind: str = "") -> list[Attempt]:
    """Return the attempts of an area; those with the key `kind` if it is given."""
    rows = yaml.safe_load((FOLDER / f"{area}.yaml").read_text(encoding="utf-8"))
    return [Attempt(name, row) for name, row in rows.items() if not kind or kind in row]
