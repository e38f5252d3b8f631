"""Two objects reduced to what is different, with names that are the same in every run."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Change", "changes", "renamed", "stored"]

Change = tuple[Any, Any]

CHANCE = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "ownerReferences", "finalizers")
"""Metadata that says nothing of an edit."""
HASH = "ray.io/hash-without-replicas-and-workers-to-delete"
ADDRESSES = ("clusterIP", "clusterIPs")
FEW = 6
"""Fields of something that is new or gone, up to which they are all told."""


def stored(item: Mapping[str, Any]) -> dict[str, Any]:
    """An object without status and without what chance made."""
    metadata = {key: value for key, value in item["metadata"].items() if key not in CHANCE}
    annotations = {key: value for key, value in metadata.get("annotations", {}).items() if key != HASH}
    spec = {key: value for key, value in item.get("spec", {}).items() if key not in ADDRESSES}
    if isinstance(spec.get("ports"), list):
        spec["ports"] = _ports(spec["ports"])
    return {"metadata": {**metadata, "annotations": annotations}, "spec": spec}


def _ports(ports: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of a Service: the operator writes them in any order, and the API server chooses numbers for nodes."""
    plain = [{key: value for key, value in port.items() if key != "nodePort"} for port in ports]
    return sorted(plain, key=lambda port: str(port.get("name")))


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """With each name replaced wherever it stands for itself, also as the beginning of another one."""
    if not names:
        return value
    either = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    pattern = re.compile(rf"(?<![A-Za-z0-9.-])({either})(?![A-Za-z0-9])")
    return _mapped(value, lambda text: pattern.sub(lambda found: names[found[1]], text))


def changes(before: Any, after: Any, path: str = "") -> dict[str, Change]:
    """Path to old and new value; None for what is not there."""
    before, after = _opened(before, after)
    if before == after:
        return {}
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        keys = [*before, *(key for key in after if key not in before)]
        return _merged(changes(before.get(key), after.get(key), _under(path, key)) for key in keys)
    if isinstance(before, list) and isinstance(after, list) and (keyed := _keyed(before, after)):
        return _of_lists(*keyed, path)
    return {path: (_brief(before), _brief(after))}


def _of_lists(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> dict[str, Change]:
    keys = [*before, *(key for key in after if key not in before)]
    found = _merged(changes(before.get(key), after.get(key), f"{path}[{key}]") for key in keys)
    stayed, stay = [key for key in before if key in after], [key for key in after if key in before]
    moved = stayed != stay or (stay and list(after)[: len(stay)] != stay)
    return {**found, f"{path} (order)": (list(before), list(after))} if moved else found


def _keyed(before: Sequence[Any], after: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Lists of things that have a name, by it."""
    for key in ("groupName", "name", "key"):
        lists = [
            {item[key]: item for item in items if isinstance(item, Mapping) and key in item}
            for items in (before, after)
        ]
        if len(lists[0]) == len(before) and len(lists[1]) == len(after) and (before or after):
            return lists[0], lists[1]
    return None


def _opened(before: Any, after: Any) -> tuple[Any, Any]:
    """What stands in a text as JSON, where it is a mapping in both."""
    if not (isinstance(before, str) and isinstance(after, str)) or before == after:
        return before, after
    try:
        opened = json.loads(before), json.loads(after)
    except ValueError:
        return before, after
    return opened if all(isinstance(item, Mapping) for item in opened) and opened[0] != opened[1] else (before, after)


def _brief(value: Any) -> Any:
    if isinstance(value, str) and len(value) > 200:
        return f"{len(value)} characters"
    count = _leaves(value)
    return value if count <= FEW else f"{count} fields"


def _leaves(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(map(_leaves, value.values()))
    return sum(map(_leaves, value)) if isinstance(value, list) else 1


def _under(path: str, key: str) -> str:
    if re.search(r"[./]", key):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _merged(parts: Any) -> dict[str, Change]:
    return {path: change for part in parts for path, change in part.items()}


def _mapped(value: Any, text: Any) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping):
        return {text(key): _mapped(item, text) for key, item in value.items()}
    return [_mapped(item, text) for item in value] if isinstance(value, list | tuple) else value
