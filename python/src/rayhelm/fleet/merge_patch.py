"""A change of a fleet file as a merge patch (RFC 7396): maps are merged, other values replace, None removes a key."""

import copy
from collections.abc import Mapping
from typing import Any

__all__ = ["apply_change"]


def apply_change(data: Any, change: Any) -> Any:
    """Return a value with a merge patch applied; the value itself stays."""
    if not isinstance(change, Mapping):
        return copy.deepcopy(change)
    merged = dict(data) if isinstance(data, Mapping) else {}
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = apply_change(merged.get(key), value)
    return merged
