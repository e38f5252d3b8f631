"""Remove from objects what differs between runs."""

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["HASH", "rename_all", "strip_status"]

GENERATED = (
    "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "ownerReferences", "finalizers",
)  # fmt: skip
"""Metadata that does not depend on the edit."""
HASH = "ray.io/hash-without-replicas-and-workers-to-delete"
ADDRESSES = ("clusterIP", "clusterIPs")


def strip_status(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without its status and without generated values."""
    metadata = {key: value for key, value in item["metadata"].items() if key not in GENERATED}
    annotations = {key: value for key, value in metadata.get("annotations", {}).items() if key != HASH}
    spec = {key: value for key, value in item.get("spec", {}).items() if key not in ADDRESSES}
    if isinstance(spec.get("ports"), list):
        spec["ports"] = _sort_ports(spec["ports"])
    return {"metadata": {**metadata, "annotations": annotations}, "spec": spec}


def _sort_ports(ports: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort the ports of a Service, which the operator writes in any order, and drop node ports."""
    plain = [{key: value for key, value in port.items() if key != "nodePort"} for port in ports]
    return sorted(plain, key=lambda port: str(port.get("name")))


def rename_all(value: Any, names: Mapping[str, str]) -> Any:
    """Replace each name, also as the beginning of another name, but not inside a word."""
    if not names:
        return value
    either = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    pattern = re.compile(rf"(?<![A-Za-z0-9.-])({either})(?![A-Za-z0-9])")
    return _map_text(value, lambda text: pattern.sub(lambda found: names[found[1]], text))


def _map_text(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key): _map_text(item, change) for key, item in value.items()}
    return [_map_text(item, change) for item in value] if isinstance(value, list | tuple) else value
