"""The value that was meant by a wrong one, for its fix: the same number, unit and word where the type allows it."""

import re
from collections.abc import Callable, Iterator
from math import ceil, isfinite
from typing import Any

from rayhelm.errors import Fix

__all__ = ["convert_rate", "find_near_value", "read_number"]

_SECONDS = {"Second": 1, "Minute": 60, "Hour": 3600, "Day": 86400}
_PERCENT = 10
"""Least number that is taken for percent: a smaller one, such as 2 for a fraction of a GPU, has other meanings."""
_RATE = re.compile(rf"(\w+)Per({'|'.join(_SECONDS)})")
_NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,12})?"
_PER = re.compile(
    rf"({_NUMBER})\s*(?:[a-z]*\s*/\s*|[a-z]*\s*per\s+|(?:r|req|q|t)p)"
    "(s|sec|seconds?|m|min|minutes?|h|hours?|d|days?)",
    re.IGNORECASE,
)
"""`60/min`, `60 requests per minute`, `60 rpm`."""
_BINARY = ("context", "max")
"""Beginnings of keys where `8k` are 8,192: lengths that are powers of two."""


def read_number(text: str) -> int | float | None:
    """Return the number that a text in quotes has."""
    if not re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,18})?", text):
        return None
    return float(text) if "." in text else int(text)


def find_near_value(key: str, value: object, limits: dict[str, Any], accepts: Callable[[object], bool]) -> Fix | None:
    """Return the fix with the nearest value that the type of `key` accepts; None if no value is near. `limits`: of
    pydantic's error (`ge`, `le`)."""
    is_share = not accepts(1.5) and not accepts(2)
    return next((fix for fix in _propose(key, value, limits, is_share=is_share) if accepts(fix.value)), None)


def _propose(key: str, value: object, limits: dict[str, Any], *, is_share: bool) -> Iterator[Fix]:
    if isinstance(value, bool):
        return
    if isinstance(value, list):
        others = f"one of {len(value)}: the key takes one value" if len(value) > 1 else "without brackets"
        yield from (Fix("", item, others) for item in value[:1])
    elif isinstance(value, str):
        yield from _read_text(key, value, is_share=is_share)
        yield Fix("", [value])
    elif isinstance(value, (int, float)):
        yield from _round(value, limits, is_share=is_share)
        yield Fix("", [value])


def _read_text(key: str, text: str, *, is_share: bool) -> Iterator[Fix]:
    if rate := _read_rate(key, text):
        yield rate
        return
    if size := re.fullmatch(rf"({_NUMBER})\s*([kKmM])", text):
        base = 1024 if key.startswith(_BINARY) else 1000
        power = 1 if size[2] in "kK" else 2
        amount = float(size[1]) * base**power
        yield Fix("", int(amount) if amount == int(amount) else amount, f"{size[1]} x {base**power}")
    noun = re.fullmatch(rf"({_NUMBER})\s+([a-z]+?)s?", text, re.IGNORECASE)
    if noun and noun[2].lower() in key.lower():
        text = noun[1]
    if re.fullmatch(r"[0-9]{1,3}([,_][0-9]{3})+", text):
        text = text.replace(",", "").replace("_", "")
    number = read_number(text.removesuffix("%").strip())
    if number is None:
        return
    if text.endswith("%"):
        if is_share:
            yield _as_share(number)
        yield Fix("", number, "in percent")
        return
    yield Fix("", number, "a number alone" if noun else "without quotes")
    if number >= _PERCENT and is_share:
        yield _as_share(number)


def _read_rate(key: str, text: str) -> Fix | None:
    """Return the fix of `60/min`, `1 rps` or `5 requests per second` in the unit of the key."""
    unit, written = _RATE.fullmatch(key), _PER.fullmatch(text.strip())
    if not unit or not written:
        return None
    number = read_number(written[1])
    name = next(name for name in _SECONDS if name[0].lower() == written[2][0].lower())
    fix = convert_rate(f"{unit[1]}Per{name}", key, number)
    return fix and Fix("", fix.value, fix.why)


def _round(value: float, limits: dict[str, Any], *, is_share: bool) -> Iterator[Fix]:
    if _PERCENT <= value <= 100 and is_share:
        yield _as_share(value)
    if not isfinite(value):
        return
    if isinstance(value, float) and value == int(value):
        yield Fix("", int(value), "a whole number")
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
