"""Pods that controllers will make of an object, which the API server judges only then."""

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["Path", "project_pods"]

Path = tuple[str | int, ...]

TEMPLATES: Mapping[str, Path] = {
    **dict.fromkeys(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"), ("spec", "template")),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
"""Where kinds of Kubernetes itself keep their pod. The ray.io kinds are judged by policies of their own."""


def project_pods(item: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The object itself and its pod, each with its place in the object."""
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
