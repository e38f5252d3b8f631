"""Apply patches to an object as the API server does."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

__all__ = ["apply_patch"]


def apply_patch(item: Mapping[str, Any], patch: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the object after a merge patch, or after a JSON patch if the patch is a list."""
    if isinstance(patch, Mapping):
        return _merge(item, patch)
    changed: dict[str, Any] = deepcopy(dict(item))
    for operation in patch:
        _apply(changed, operation)
    return changed


def _merge(item: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        return deepcopy(patch)
    merged = dict(item) if isinstance(item, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge(merged.get(key), value)
    return merged


def _apply(item: dict[str, Any], operation: Mapping[str, Any]) -> None:
    match operation["op"]:
        case "remove":
            _remove(item, operation["path"])
        case "move":
            _write(item, operation["path"], _remove(item, operation["from"]))
        case "copy":
            _write(item, operation["path"], deepcopy(_read(item, operation["from"])))
        case "replace":
            _remove(item, operation["path"])
            _write(item, operation["path"], operation["value"])
        case other:
            assert other == "add"
            _write(item, operation["path"], operation["value"])


def _read(item: Any, path: str) -> Any:
    for step in _split(path):
        item = item[int(step)] if isinstance(item, list) else item[step]
    return item


def _remove(item: Any, path: str) -> Any:
    *above, last = _split(path)
    for step in above:
        item = item[int(step)] if isinstance(item, list) else item[step]
    return item.pop(int(last) if isinstance(item, list) else last)


def _write(item: Any, path: str, value: Any) -> None:
    *above, last = _split(path)
    for step in above:
        item = item[int(step)] if isinstance(item, list) else item[step]
    if isinstance(item, list):
        item.insert(len(item) if last == "-" else int(last), value)
    else:
        item[last] = value


def _split(path: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]
