"""The value that was meant by a wrong one, for its fix: the same number, unit and word where the type allows it."""

import re
from collections.abc import Callable, Iterator
from math import ceil
from typing import Any

from rayhelm.errors import Fix

__all__ = ["convert_rate", "find_near_value", "read_number"]

_SECONDS = {"Second": 1, "Minute": 60, "Hour": 3600, "Day": 86400}
_PERCENT = 10
"""Least number that is taken for percent: a smaller one, such as 2 for a fraction of a GPU, has other meanings."""
_RATE = re.compile(rf"(\w+)Per({'|'.join(_SECONDS)})")


def read_number(text: str) -> int | float | None:
    """Return the number that a text in quotes has."""
    if not re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,18})?", text):
        return None
    return float(text) if "." in text else int(text)


def find_near_value(value: object, limits: dict[str, Any], accepts: Callable[[object], bool]) -> Fix | None:
    """Return the fix with the nearest value that the type accepts; None if no value is near. `limits`: of pydantic's
    error (`ge`, `le`)."""
    return next((fix for fix in _propose(value, limits) if accepts(fix.value)), None)


def _propose(value: object, limits: dict[str, Any]) -> Iterator[Fix]:
    if isinstance(value, bool):
        return
    if isinstance(value, list):
        others = f"one of {len(value)}: the key takes one value" if len(value) > 1 else "without brackets"
        yield from (Fix("", item, others) for item in value[:1])
    elif isinstance(value, str):
        yield from _read_text(value)
        yield Fix("", [value])
    elif isinstance(value, (int, float)):
        yield from _round(value, limits)
        yield Fix("", [value])


def _read_text(text: str) -> Iterator[Fix]:
    if thousands := re.fullmatch(r"([0-9]{1,6})\s*[kK]", text):
        yield Fix("", int(thousands[1]) * 1024, f"{thousands[1]} x 1024")
    number = read_number(text.removesuffix("%").strip())
    if number is None:
        return
    if text.endswith("%"):
        yield _as_share(number)
        yield Fix("", number, "in percent")
        return
    yield Fix("", number, "without quotes")
    if number >= _PERCENT:
        yield _as_share(number)


def _round(value: float, limits: dict[str, Any]) -> Iterator[Fix]:
    if _PERCENT <= value <= 100:
        yield _as_share(value)
    if value > 0 and value != int(value):
        yield Fix("", ceil(value), "rounded up: a whole number")
    if value > 0 and (bound := limits.get("ge")):
        yield Fix("", bound, "the least that is allowed")
    if bound := limits.get("le"):
        yield Fix("", bound, "the most that is allowed")


def _as_share(percent: float) -> Fix:
    return Fix("", round(percent / 100, 9), f"{percent:g} % as a share")


def convert_rate(old: str, new: str, value: object) -> Fix | None:
    """Return the fix with a rate in the unit of another key (`requestsPerMinute` for `requestsPerSecond`); None if the
    keys are no rates of the same thing."""
    before, after = _RATE.fullmatch(old), _RATE.fullmatch(new)
    if not before or not after or before[1] != after[1]:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    rate = value * _SECONDS[after[2]] / _SECONDS[before[2]]
    exact = int(rate) if rate == int(rate) else float(f"{rate:.6g}")
    return Fix(f"../{new}", exact, f"{value:g} per {before[2].lower()}", replaces="")
