"""Find changes of objects that the API server refuses in an upgrade."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rayhelm.check.forecast.differences import list_changes
from rayhelm.check.forecast.edits import match_path
from rayhelm.facts.quantities import read_quantity

__all__ = ["list_refused_changes"]

_IMMUTABLE = {
    "Deployment": ("spec.selector",),
    "Job": ("spec.template", "spec.selector", "spec.completions"),
    "PersistentVolumeClaim": ("spec",),
    "PriorityClass": ("value", "preemptionPolicy"),
    "RoleBinding": ("roleRef",),
    "ClusterRoleBinding": ("roleRef",),
    "RuntimeClass": ("handler",),
}
"""Fields that cannot change after the creation (validation of Kubernetes 1.36)."""
_SIZE = "spec.resources.requests.storage"
_HOOK = "helm.sh/hook"


def list_refused_changes(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield why the API server refuses the change of an object: a sentence for each field."""
    old = {(item["kind"], item["metadata"]["name"]): item for item in before}
    for item in after:
        kind, name = item["kind"], item["metadata"]["name"]
        # Helm deletes the object of a hook, and creates it again.
        if kind not in _IMMUTABLE or (kind, name) not in old or _HOOK in item["metadata"].get("annotations", {}):
            continue
        for path, (first, last) in list_changes(old[kind, name], item).items():
            if path == _SIZE and (read_quantity(last) or 0) >= (read_quantity(first) or 0):
                continue
            if any(match_path(field, path) for field in _IMMUTABLE[kind]):
                verb = "cannot shrink" if path == _SIZE else "cannot change"
                yield f"{kind} {name}: {path} {verb} ({first} -> {last}); delete the object first, or keep the value"
