"""Quantities of Kubernetes as numbers."""

import re
from decimal import Decimal

__all__ = ["are_equal_quantities", "parse_quantity", "read_quantity"]

_SUFFIXES = {"n": "1e-9", "u": "1e-6", "m": "1e-3", "k": "1e3", "M": "1e6", "G": "1e9", "T": "1e12", "P": "1e15"} | {
    f"{letter}i": str(1024**power) for power, letter in enumerate("KMGTPE", start=1)
}
_SUFFIXES["E"] = "1e18"
_NUMBER = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?", re.ASCII)
"""Neither NaN nor so many digits that arithmetic with it fails."""


def parse_quantity(text: str | int | float) -> Decimal:
    """Return a quantity like `200m`, `256Mi` or 2 as a number. Raises ValueError."""
    plain = str(text)
    suffix = next((each for each in sorted(_SUFFIXES, key=len, reverse=True) if plain.endswith(each)), "")
    number = plain.removesuffix(suffix)
    if not _NUMBER.fullmatch(number):
        raise ValueError(f"{text!r} is not a quantity")
    return Decimal(number) * Decimal(_SUFFIXES.get(suffix, "1"))


def read_quantity(value: object) -> Decimal | None:
    """Return a value as a number; None if it is no quantity."""
    try:
        return parse_quantity(value) if isinstance(value, str | int | float) else None
    except ValueError:
        return None


def are_equal_quantities(one: object, other: object) -> bool:
    """Return whether two values are the same quantity: `1000m` and 1."""
    number = read_quantity(one)
    return number is not None and number == read_quantity(other)
