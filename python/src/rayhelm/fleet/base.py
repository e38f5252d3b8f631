"""The base of the records of the fleet file.

Strict: `replicas: true` is no number and `nodes: "2"` no count. Finite: `1e999` is no amount of anything.
"""

from collections.abc import Callable
from math import log
from typing import Annotated, TypeVar

from pydantic import AfterValidator, ConfigDict, Strict

from rayhelm.errors import Fix
from rayhelm.facts.closed import ClosedCamel
from rayhelm.fleet.web_url import find_secret_part, hide_secrets, remove_secrets

__all__ = ["ListOf", "PublicUrl", "Record", "Refusal", "UnitMissing", "short", "spell"]

Item = TypeVar("Item")

ListOf = Annotated[tuple[Item, ...], Strict(False)]
"""A list in YAML, an immutable tuple here; its items stay strict."""


class Record(ClosedCamel):
    """A record of the fleet file."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class Refusal(ValueError):
    """A value that a validator refuses, with the reason and a fix."""

    def __init__(self, message: str, fix: Fix) -> None:
        """The path of `fix` is relative to the refused value."""
        super().__init__(message)
        self.fix = fix


class UnitMissing(Refusal):
    """A number without its unit. The example of the key says which unit is likely."""

    def __init__(self, message: str, quantities: dict[str, float], read: Callable[[str], float]) -> None:
        """`quantities`: the number with each unit, and its size; the most common unit first. `read` returns the size
        of an example."""
        super().__init__(message, Fix("", next(iter(quantities))))
        self._quantities, self._read = quantities, read

    def choose(self, example: str) -> Fix:
        """Return the fix with the unit whose size is nearest to the one of an example."""
        size = self._read(example)
        nearest = min(self._quantities, key=lambda each: abs(log(self._quantities[each] / size)))
        others = " or ".join(each for each in self._quantities if each != nearest)
        return Fix("", nearest, f"or {others}" if others else "")


def short(value: object) -> str:
    """A value as YAML spells it, in one line of a message."""
    text = spell(value)
    return text if len(text) < 60 else text[:57] + "…"


def spell(value: object) -> str:
    """A value as YAML spells it, however long it is."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = hide_secrets(str(value))
    return text if text.isprintable() else ascii(text)


def _refuse_secrets(url: str) -> str:
    if part := find_secret_part(url):
        message = f"the URL has {part}, which all readers of the file and of the objects in the cluster can read"
        raise Refusal(message, Fix("", remove_secrets(url), "credentials belong in a Secret"))
    return url


PublicUrl = Annotated[str, AfterValidator(_refuse_secrets)]
"""A URL without user, password, query and fragment: it is written into values and objects."""
