"""Quantities that carry their unit in the text: `600ms`, `80GiB`, `10Gbit/s`, `2.10 USD/h`.

A number without unit is refused, because seconds and milliseconds would look the same.
"""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from rayhelm.errors import Fix
from rayhelm.fleet.base import Refusal, UnitMissing, short

__all__ = [
    "Bandwidth",
    "Bytes",
    "Duration",
    "PricePerGigabyte",
    "PricePerHour",
    "QuantitySchema",
    "ReservedBytes",
]

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BITS = {"kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "Tbit/s": 1e12, "MB/s": 8e6, "GB/s": 8e9}
_PRICE = {"USD/h": 1.0}
_PRICE_OF_TRAFFIC = {"USD/GB": 1.0}
_OTHER_SPELLINGS = {
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("msec", "msecs", "millis"), "ms"),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), "h"),
    **{unit.removesuffix("B"): unit for unit in ("KiB", "MiB", "GiB", "TiB", "MB", "GB", "TB")},
    **{f"{prefix}{end}": f"{prefix}bit/s" for prefix in "kMGT" for end in ("bps", "b/s", "bit")},
    "$/h": "USD/h",
}
"""Units that others write, for the fix of a wrong one. They are not accepted: a fleet file has one spelling."""


class QuantitySchema(WithJsonSchema):
    """Marks the type of a quantity, for messages that name types."""


def _quantity(units: dict[str, float], what: str, example: str, most: str, *, free: bool = False) -> Any:
    """`most` is the limit; zero is allowed only if it may be `free`."""
    names = "|".join(re.escape(unit) for unit in sorted(units, key=len, reverse=True))
    number_and_unit = re.compile(rf"^\s*([0-9]+(?:\.[0-9]+)?)\s*({names})\s*$")

    largest = number_and_unit.match(most)
    assert largest
    limit = float(largest[1]) * units[largest[2]]

    def read(text: str) -> float:
        found = number_and_unit.match(text)
        assert found
        return float(found[1]) * units[found[2]]

    def parse(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise Refusal(f"is not {what}", Fix("", example, "an example"))
        if isinstance(value, (int, float)):
            if value < 0:
                raise Refusal(f"{what} cannot be negative", Fix("", example, "an example"))
            written = [f"{value:g}{unit}" for unit in _likely(units)]
            if not value and not free:
                raise Refusal(f"{what} must be more than zero", Fix("", example, "an example"))
            message = f"{value} has no unit; write {' or '.join(written)}"
            if value and all(number_and_unit.match(each) for each in written):
                raise UnitMissing(message, {each: read(each) for each in written}, read)
            raise Refusal(message, Fix("", written[0] if free and not value else example, "an example"))
        if value.strip().startswith("-"):
            raise Refusal(f"{what} cannot be negative", Fix("", example, "an example"))
        if not (match := number_and_unit.match(value)):
            respelled = _respell(value, units)
            fix = Fix("", respelled) if respelled else Fix("", example, "an example")
            raise Refusal(f"`{short(value)}` is not {what}; its units: {', '.join(units)}", fix)
        number = float(match[1]) * units[match[2]]
        if number <= 0 and not free:
            raise Refusal(f"{what} must be more than zero", Fix("", example, "an example"))
        if number > limit:
            raise Refusal(f"`{short(value)}` is more than {most}, the limit", Fix("", most, "the limit"))
        return number

    schema = {"type": "string", "pattern": rf"^\s*[0-9]+(\.[0-9]+)?\s*({names})\s*$", "examples": [example]}
    return BeforeValidator(parse), QuantitySchema(schema)


def _respell(value: str, units: dict[str, float]) -> str | None:
    """The same quantity with one of the units; None if that unit is not clear. `gb/s` can mean bits or bytes. Words
    before it (`p95 < 2s`) are left out."""
    parts = re.fullmatch(r"[^\d-]*?(?:p[0-9.]+[^\d-]+)?([0-9]*[1-9][0-9]*(?:\.[0-9]+)?)\s*([^\d\s]\S*)\s*", value)
    if not parts:
        return None
    clear = {unit.lower(): unit for unit in units if "b/s" not in unit.lower()}
    unit = _OTHER_SPELLINGS.get(parts[2]) or clear.get(parts[2].lower(), "")
    if unit not in units or len(parts[1]) > 4:  # a long number can be above the limit
        return None
    return f"{parts[1]}{' ' * unit.startswith('USD')}{unit}"


def _likely(units: dict[str, float]) -> list[str]:
    """The two most common units."""
    for pair in (["ms", "s"], ["GiB", "GB"], ["Gbit/s"], ["USD/h"], ["USD/GB"]):
        if pair[0] in units:
            return [f" {unit}" if unit.startswith("USD") else unit for unit in pair]
    raise AssertionError(units)


Duration = Annotated[float, *_quantity(_SECONDS, "a duration", "600ms", "24h")]
"""Seconds."""
Bytes = Annotated[
    float, *_quantity({k: float(v) for k, v in _BYTES.items()}, "an amount of memory", "80GiB", "1024TiB")
]
"""Bytes."""
ReservedBytes = Annotated[
    float, *_quantity({k: float(v) for k, v in _BYTES.items()}, "an amount of memory", "1GiB", "1024TiB", free=True)
]
"""Bytes; may be 0."""
Bandwidth = Annotated[float, *_quantity(_BITS, "a bandwidth", "10Gbit/s", "100Tbit/s")]
"""Bits per second."""
PricePerHour = Annotated[float, *_quantity(_PRICE, "a price", "2.10 USD/h", "100000 USD/h", free=True)]
"""US dollars per GPU and hour; 0 for a GPU without running costs."""
PricePerGigabyte = Annotated[
    float, *_quantity(_PRICE_OF_TRAFFIC, "a price of traffic", "0.02 USD/GB", "100 USD/GB", free=True)
]
"""US dollars per 10^9 bytes; 0 for traffic without a price."""
