"""Pods that controllers create from an object. The API server evaluates policies on them only when they are created."""

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["Path", "project_pods"]

Path = tuple[str | int, ...]

TEMPLATES: Mapping[str, Path] = {
    **dict.fromkeys(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"), ("spec", "template")),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
"""Path of the pod template by kind. The ray.io kinds have policies of their own."""


def project_pods(item: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the object and its pod, each with its path in the object."""
    yield (), item
    template: Any = item
    place = TEMPLATES.get(item["kind"], ())
    for part in place:
        template = template.get(part) if isinstance(template, dict) else None
    if place and isinstance(template, dict):
        about = {**(template.get("metadata") or {}), "name": item["metadata"].get("name", "")}
        if space := item["metadata"].get("namespace"):
            about["namespace"] = space
        yield place, {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": template.get("spec") or {}}
