"""What a sync by Argo CD would change: its diff with ServerSideApply and ServerSideDiff."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from cluster.kit.cluster import Cluster, Object

__all__ = ["find_differences"]

MANAGER = "argocd-controller"
"""Field manager of Argo CD's application controller."""
OF_THE_SERVER = ("managedFields", "resourceVersion", "generation")


def find_differences(cluster: Cluster, objects: Iterable[Object]) -> list[str]:
    """Return `<kind>/<namespace>/<name>: <path>` of each field that a sync of these objects would change now."""
    text = yaml.safe_dump_all(objects)
    where = ("--output=json", "-f", "-")
    options = ("--server-side", "--force-conflicts", "--dry-run=server", f"--field-manager={MANAGER}")
    live = _by_name(cluster.kubectl("get", *where, text=text))
    predicted = _by_name(cluster.kubectl("apply", *options, *where, text=text))
    assert live.keys() == predicted.keys()
    return [f"{name}: {path}" for name, item in live.items() for path in _compare(item, predicted[name], "")]


def _by_name(text: str) -> dict[str, Object]:
    found = json.loads(text)
    items = found["items"] if found["kind"] == "List" else [found]
    return {_name(item): _as_applied(item) for item in items}


def _name(item: Object) -> str:
    namespace = item["metadata"].get("namespace")
    return "/".join(part for part in (item["kind"], namespace, item["metadata"]["name"]) if part)


def _as_applied(item: Object) -> Object:
    """Return an object without its status, and without what the API server writes itself."""
    metadata = {key: value for key, value in item["metadata"].items() if key not in OF_THE_SERVER}
    return {key: value for key, value in item.items() if key != "status"} | {"metadata": metadata}


def _compare(live: Any, predicted: Any, path: str) -> Iterator[str]:
    if isinstance(live, dict) and isinstance(predicted, dict):
        for key in sorted({*live, *predicted}):
            yield from _compare(live.get(key), predicted.get(key), f"{path}.{key}".lstrip("."))
    elif live != predicted:
        yield path
