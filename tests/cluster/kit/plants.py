"""Plant the faults of the doctor's checks on an API server."""

import fnmatch
import json

import yaml

from cluster.kit.cluster import Cluster
from rayhelm.live.cluster.kinds import Kind
from shared.plant import Change, Plant

__all__ = ["plant"]


def plant(cluster: Cluster, fault: Plant) -> None:
    """Make one fault."""
    for item in fault.create:
        objects = {key: value for key, value in item.items() if key != "status"}
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=yaml.safe_dump(objects))
        if status := item.get("status"):
            _patch(cluster, item["kind"], item["metadata"]["name"], item["metadata"].get("namespace", ""), status)
    for change in fault.change:
        _change(cluster, change)
    for kind, namespace, name in fault.delete:
        where = [f"--namespace={namespace}"] if namespace else []
        cluster.kubectl("delete", kind.resource, name, *where)


def _patch(cluster: Cluster, kind: str, name: str, namespace: str, status: object) -> None:
    where = [f"--namespace={namespace}"] if namespace else []
    patch = json.dumps({"status": status})
    cluster.kubectl("patch", kind, name, *where, "--subresource=status", "--type=merge", "--patch", patch)


def _change(cluster: Cluster, change: Change) -> None:
    for name in _find_names(cluster, change.kind, change.namespace, change.name):
        where = [f"--namespace={change.namespace}"] if change.namespace else []
        options = ["--subresource=status"] if change.is_status else []
        form = "strategic" if change.is_strategic else "merge"
        patch = json.dumps(change.patch)
        cluster.kubectl("patch", change.kind.resource, name, *where, *options, f"--type={form}", "--patch", patch)


def _find_names(cluster: Cluster, kind: Kind, namespace: str, pattern: str) -> list[str]:
    if "*" not in pattern:
        return [pattern]
    found = cluster.kubectl.get(kind.resource, namespace=namespace)["items"]
    return [item["metadata"]["name"] for item in found if fnmatch.fnmatch(item["metadata"]["name"], pattern)]
