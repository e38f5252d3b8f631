"""Licenses of models that forbid what most fleets do: one file in `data/licenses/` each.

A model that no file names may have such a license too.
"""

from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import yaml
from pydantic import Field

from rayhelm.facts.closed import Closed

__all__ = ["License", "find_license", "load_licenses"]

_FOLDER = Path(__file__).parent.parent / "data" / "licenses"


class License(Closed):
    """A license, and the models that have it."""

    name: str
    restriction: str
    """What it forbids, as a clause of a sentence."""
    models: list[str] = Field(min_length=1)
    """Hub ids; `*` stands for any text."""
    source: str
    """Where the license of these models was read, and when."""


@cache
def load_licenses() -> dict[str, License]:
    """Return each license by its id."""
    return {path.stem: License.model_validate(yaml.safe_load(path.read_text())) for path in sorted(_FOLDER.iterdir())}


def find_license(source: str) -> License | None:
    """Return the restrictive license of a hub model; None if none is known."""
    name = source.lower()
    return next((found for found in load_licenses().values() if _covers(found, name)), None)


def _covers(found: License, name: str) -> bool:
    return any(fnmatchcase(name, model.lower()) for model in found.models)
