"""Label selectors of Kubernetes."""

from collections.abc import Mapping
from typing import Any

__all__ = ["holds"]


def holds(requirement: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    """Return whether labels meet a requirement of `matchExpressions`."""
    value, values = labels.get(str(requirement.get("key"))), requirement.get("values") or []
    match requirement.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
    return value is None
