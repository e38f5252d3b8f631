"""A fault that proves a check: how it is made, and what the check says about it.

The tests plant every one of them on a real API server, and on recorded answers of it.
"""

import importlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rayhelm.live.cluster.kinds import Kind

__all__ = ["Change", "Plant", "load_plants"]

Object = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """A merge patch of an object of the reference fleet."""

    kind: Kind
    name: str
    """`*` stands for any text: the names of RayClusters and pods are random."""
    namespace: str
    patch: Object
    is_status: bool = False
    """The patch is of the subresource `status`."""
    is_strategic: bool = False
    """Lists of objects are merged by their `name`."""


@dataclass(frozen=True)
class Plant:
    """One fault in fleet `two-workstations`."""

    name: str
    """What is wrong, in a few words; the table of the checks has it."""
    found: str
    """A regular expression of the cause or the evidence of the finding."""
    object: str
    """Object of the finding."""
    create: tuple[Object, ...] = ()
    """Objects that are created, with their status."""
    change: tuple[Change, ...] = ()
    delete: tuple[tuple[Kind, str, str], ...] = ()
    """Kind, namespace and name of objects that are deleted."""
    eventually: bool = False
    """The finding needs the status that a controller writes, so it comes a moment later."""
    is_only_real: bool = False
    """The API server or a controller makes the fault, so recorded answers cannot have it."""
    is_only_recorded: bool = False
    """A controller of the test cluster would repair it, or the test cluster cannot have it: it is planted into
    recorded answers only."""


@cache
def load_plants() -> dict[str, tuple[Plant, ...]]:
    """Return the faults of each check, by its id: `shared/plants/<check>.py`."""
    files = sorted((Path(__file__).parent / "plants").glob("*.py"))
    return {file.stem.replace("_", "-"): importlib.import_module(f"shared.plants.{file.stem}").PLANTS for file in files}
