"""What a change of a gateway means for tenants: who may call what, and their limits."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["list_access_changes"]

_LIMITS = {"requestsPerMinute": "default", "tokensPerMinute": "no limit", "concurrency": "default"}
"""Limits of a tenant, each with the meaning of its absence."""
_BY_MODEL = {"maxOutputTokens": "no limit", "maxBodyBytes": "no limit", "pinnedVersions": "by weight"}
"""Settings of a tenant for each of its models, each with the meaning of its absence."""


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
        yield from _list_limit_changes(f"tenant {name}", sorted(old & new), first[name], last[name])


def _list_limit_changes(
    tenant: str, models: Sequence[str], old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[str]:
    """Yield a sentence for each limit, and for each setting of `models`, that differs."""
    for limit, absent in _LIMITS.items():
        before, after = (each.get(limit) for each in (old, new))
        if before != after:
            yield f"{tenant}: {limit} {_show(before, absent)} -> {_show(after, absent)}"
    for limit, absent in _BY_MODEL.items():
        for model in models:
            before, after = ((each.get(limit) or {}).get(model) for each in (old, new))
            if before != after:
                yield f"{tenant}: {limit} of {model} {_show(before, absent)} -> {_show(after, absent)}"


def _show(value: object, absent: str) -> str:
    return absent if value is None else str(value)
