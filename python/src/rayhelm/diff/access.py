"""What a change of a gateway means for tenants: who may call what, and their limits."""

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["list_access_changes"]

_LIMITS = ("requestsPerMinute", "tokensPerMinute", "concurrency")


def list_access_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each tenant that is added or removed, and for each right and limit that changes. Takes the
    values of both releases of chart `gateway`."""
    first, last = (values.get("tenants") or {} for values in (before, after))
    for name in sorted(last.keys() - first.keys()):
        models = ", ".join(last[name].get("models") or ()) or "no model"
        secret = (last[name].get("keys") or {}).get("secretName")
        keys = f"; its requests get 401 until Secret {secret} has its keys" if secret else ""
        yield f"tenant {name} is added and may call {models}{keys}"
    for name in sorted(first.keys() - last.keys()):
        yield f"tenant {name} is removed: its keys get 401"
    for name in sorted(first.keys() & last.keys()):
        old, new = (set(each[name].get("models") or ()) for each in (first, last))
        if added := sorted(new - old):
            yield f"tenant {name} may also call {', '.join(added)}"
        if lost := sorted(old - new):
            yield f"tenant {name} may no longer call {', '.join(lost)}: its requests get 404"
        for limit in _LIMITS:
            values = [each[name].get(limit) for each in (first, last)]
            if values[0] != values[1]:
                shown = " -> ".join("default" if value is None else str(value) for value in values)
                yield f"tenant {name}: {limit} {shown}"
