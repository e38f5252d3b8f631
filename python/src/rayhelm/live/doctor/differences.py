"""Find where a live object differs from the rendered one. Fields that are not rendered are not compared: the API server
and controllers fill them in."""

import json
from collections.abc import Iterator
from typing import Any

from rayhelm.facts.quantities import are_equal_quantities

__all__ = ["find_differences", "format_value"]

_EMPTY: tuple[Any, ...] = (None, "", {}, [], False, 0)
"""Values that the API server leaves out."""


def find_differences(wanted: Any, found: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield path, rendered value and live value of each field that was rendered and differs."""
    wanted, found = _parse(wanted), _parse(found)
    if wanted == found or (wanted in _EMPTY and found in _EMPTY) or are_equal_quantities(wanted, found):
        return
    if isinstance(wanted, dict) and isinstance(found, dict | None):
        for key, value in wanted.items():
            yield from find_differences(value, (found or {}).get(key), f"{path}.{key}" if path else str(key))
        return
    if isinstance(wanted, list) and isinstance(found, list):
        yield from _find_in_list(wanted, found, path)
        return
    yield path, wanted, found


def _find_in_list(wanted: list[Any], found: list[Any], path: str) -> Iterator[tuple[str, Any, Any]]:
    for key in ("name", "groupName", "key"):
        named = [
            {item[key]: item for item in items if isinstance(item, dict) and isinstance(item.get(key), str)}
            for items in (wanted, found)
        ]
        if wanted and len(named[0]) == len(wanted) and len(named[1]) == len(found):
            for name, item in named[0].items():
                yield from find_differences(item, named[1].get(name), f"{path}[{name}]")
            for name in named[1].keys() - named[0].keys():
                yield f"{path}[{name}]", None, named[1][name]
            return
    if len(wanted) != len(found):
        yield path, wanted, found
        return
    for index, (one, other) in enumerate(zip(wanted, found, strict=True)):
        yield from find_differences(one, other, f"{path}[{index}]")


def format_value(value: Any) -> str:
    """Return a short text of a value."""
    text = "nothing" if value is None else value if isinstance(value, str) else json.dumps(value)
    first, _, rest = text.strip().partition("\n")
    return first[:80] + ("…" if rest or len(first) > 80 else "")


def _parse(value: Any) -> Any:
    """A text that is a JSON object, such as serveConfigV2, is compared by its fields."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
