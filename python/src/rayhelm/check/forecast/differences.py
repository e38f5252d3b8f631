"""List the differences between two Kubernetes objects."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["FieldChange", "list_changes"]

FieldChange = tuple[Any, Any]
"""Old and new value; None for a value that does not exist."""
MAX_FIELDS = 6
"""Largest number of fields of a new or removed object that is listed in full."""


def list_changes(before: Any, after: Any, path: str = "") -> dict[str, FieldChange]:
    """Return the differences by path, for example `spec.template.spec.containers[main].image`.

    Lists of objects with a name are compared by name; `PATH (order)` is a change of their order. A text that is a JSON
    object before and after is compared as JSON.
    """
    before, after = _parse(before, after)
    if before == after:
        return {}
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        keys = [*before, *(key for key in after if key not in before)]
        return _merge(list_changes(before.get(key), after.get(key), _join(path, key)) for key in keys)
    if isinstance(before, list) and isinstance(after, list) and (named := _index_by_name(before, after)):
        return _compare_lists(*named, path)
    return {path: (_shorten(before), _shorten(after))}


def _compare_lists(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> dict[str, FieldChange]:
    keys = [*before, *(key for key in after if key not in before)]
    found = _merge(list_changes(before.get(key), after.get(key), f"{path}[{key}]") for key in keys)
    old_order, new_order = [key for key in before if key in after], [key for key in after if key in before]
    is_moved = old_order != new_order or (new_order and list(after)[: len(new_order)] != new_order)
    return {**found, f"{path} (order)": (list(before), list(after))} if is_moved else found


def _index_by_name(before: Sequence[Any], after: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    for key in ("groupName", "name", "key"):
        lists = [
            {item[key]: item for item in items if isinstance(item, Mapping) and key in item}
            for items in (before, after)
        ]
        if len(lists[0]) == len(before) and len(lists[1]) == len(after) and (before or after):
            return lists[0], lists[1]
    return None


def _parse(before: Any, after: Any) -> tuple[Any, Any]:
    """Parse two texts as JSON if both are different JSON objects."""
    if not (isinstance(before, str) and isinstance(after, str)) or before == after:
        return before, after
    try:
        parsed = json.loads(before), json.loads(after)
    except ValueError:
        return before, after
    return parsed if all(isinstance(item, Mapping) for item in parsed) and parsed[0] != parsed[1] else (before, after)


def _shorten(value: Any) -> Any:
    if isinstance(value, str) and len(value) > 200:
        return f"{len(value)} characters"
    count = _count_fields(value)
    return value if count <= MAX_FIELDS else f"{count} fields"


def _count_fields(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(map(_count_fields, value.values()))
    return sum(map(_count_fields, value)) if isinstance(value, list) else 1


def _join(path: str, key: str) -> str:
    if re.search(r"[./]", key):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _merge(parts: Iterable[Mapping[str, FieldChange]]) -> dict[str, FieldChange]:
    return {path: change for part in parts for path, change in part.items()}
