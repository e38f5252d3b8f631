"""Remove the objects of a testbed from a joined cluster."""

import json
from collections.abc import Callable
from typing import Any

from rayhelm.errors import RayhelmError
from rayhelm.live.cluster.kubectl import Kubectl, KubectlError
from rayhelm.processes import TimedOut, list_members, wait_until
from testbed.control_plane.addons import MANIFESTS, NAMESPACE
from testbed.control_plane.definitions import installed_by_us
from testbed.control_plane.home import Home
from testbed.control_plane.running import run_of
from testbed.nodes.manifest import SIMULATED
from testbed.tools import program

__all__ = ["leave", "wait_for_deletions"]

PATIENCE = "--request-timeout=60s"
SIMULATED_KINDS = "nodes,persistentvolumes,storageclasses"
KUBERAYS = "rayservices,rayclusters,rayjobs"


def wait_for_deletions(home: Home) -> None:
    """Wait until the operator has finished pending deletions, because its finalizers would block them forever without
    it. Pods of removed nodes take the cluster about a minute."""
    if not list_members(run_of(home, "kuberay-operator")):
        return
    try:
        kubectl = _create_kubectl(home)
        wait_until(lambda: not _is_any_deleted(kubectl) or None, what="deletions", timeout=90, poll=1)
    except (RayhelmError, TimedOut):
        return  # `leave` says what remains


def leave(home: Home, say: Callable[[str], None]) -> None:
    """Remove accounts, roles, the mark, and simulated nodes and volumes, which need KWOK.

    CRDs stay, because their removal would remove every object of their kinds. If the cluster does not answer, a message
    says so: it may no longer exist, and the processes are stopped anyway."""
    try:
        kubectl = _create_kubectl(home)
        kubectl("delete", SIMULATED_KINDS, f"--selector={SIMULATED}", "--wait=false", PATIENCE)
        kubectl("delete", "--ignore-not-found", "--timeout=120s", *(f"--filename={file}" for file in MANIFESTS))
        crds = installed_by_us(kubectl)
        objects = _list_items(kubectl, KUBERAYS) if crds else []
    except RayhelmError as error:
        said = error.said if isinstance(error, KubectlError) else str(error)
        say(
            f"the joined cluster could not be cleaned: {said.splitlines()[-1]}\n    where it still is, namespace "
            f"{NAMESPACE}, ClusterRoles {NAMESPACE}-* and ray-stand-in, and what has the label {SIMULATED} are in it"
        )
        return
    if crds:
        say(f"{len(crds)} CRDs stay in the joined cluster: {crds[0]}, ...")
    if objects:
        names = [f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in objects]
        say(f"{len(objects)} objects of KubeRay stay in it without an operator: {', '.join(names[:3])}, ...")


def _create_kubectl(home: Home) -> Kubectl:
    return Kubectl(program("kubectl"), home.kubeconfig, run=run_of(home, "kubectl"))


def _is_any_deleted(kubectl: Kubectl) -> bool:
    """Return whether an object of KubeRay, or its namespace, is being deleted."""
    namespaces = {item["metadata"]["name"] for item in _list_items(kubectl, "namespaces") if _is_deleted(item)}
    return any(
        _is_deleted(item) or item["metadata"]["namespace"] in namespaces for item in _list_items(kubectl, KUBERAYS)
    )


def _is_deleted(item: dict[str, Any]) -> bool:
    return "deletionTimestamp" in item["metadata"]


def _list_items(kubectl: Kubectl, kinds: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(kubectl("get", kinds, "-A", "--output=json", PATIENCE))["items"]
    return found
