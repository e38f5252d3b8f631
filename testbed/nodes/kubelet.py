"""Stop and start the kubelet of a simulated node, or delete the node."""

import json
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from testbed.nodes.hosts import Host, Size
from testbed.nodes.kubectl import kubectl
from testbed.nodes.manifest import KUBELET
from testbed.nodes.manifest import node as node_of

__all__ = ["lose_node", "start_kubelet", "stop_kubelet"]


def stop_kubelet(node: str, kubeconfig: Path, *, noticed: bool = True) -> None:
    """Stop the kubelet of a node: its pods neither start nor end.

    The controller manager marks the node Unknown and its pods not Ready 50 s after the last heartbeat. With `noticed`,
    this function sets both conditions itself, so that no test waits. The cluster adds the taint, and evicts the pods
    after `tolerationSeconds` (300, unless the pod sets another value).

    Raises RayhelmError if the node does not exist."""
    kubectl(kubeconfig, "label", "node", node, f"{KUBELET}-")
    if not noticed:
        return
    _wait_for_kwok(kubeconfig)
    _set_ready("Unknown", ["node", node], kubeconfig, reason="NodeStatusUnknown")
    for pod in _list_pods(node, kubeconfig):
        _set_ready("False", _name_pod(pod), kubeconfig)


def start_kubelet(node: str, kubeconfig: Path) -> None:
    """Start the kubelet: the node and its remaining pods are Ready within seconds."""
    kubectl(kubeconfig, "label", "--overwrite", "node", node, f"{KUBELET}=alive")


def lose_node(node: str, kubeconfig: Path) -> None:
    """Delete a node and its pods. Without this, the garbage collection of pods deletes them 75 s later.

    Raises RayhelmError if the node does not exist."""
    kubectl(kubeconfig, "delete", "node", node)
    for pod in _list_pods(node, kubeconfig):
        # No kubelet is left to report that it has ended.
        kubectl(kubeconfig, "delete", *_name_pod(pod), "--force", "--grace-period=0", "--ignore-not-found")


def _wait_for_kwok(kubeconfig: Path) -> None:
    """Return when KWOK has seen all changes of nodes so far: it would make the pods Ready again before that.

    It sees nodes in the order of their changes, so it has seen those before a new node that it made Ready."""
    name = f"seen-{uuid.uuid4().hex[:8]}"
    later = node_of(Host(name, "seen", Size(cpus=0, memory=0), region="main"))
    later["spec"] = {"unschedulable": True}
    kubectl(kubeconfig, "create", "--filename=-", text=json.dumps(later))
    try:
        kubectl(kubeconfig, "wait", "node", name, "--for=condition=Ready", "--timeout=300s")
    finally:
        kubectl(kubeconfig, "delete", "node", name)


def _list_pods(node: str, kubeconfig: Path) -> list[dict[str, Any]]:
    pods = kubectl(kubeconfig, "get", "pods", "-A", f"--field-selector=spec.nodeName={node}", "--output=json")
    return [pod for pod in json.loads(pods)["items"] if pod["status"].get("phase") == "Running"]


def _name_pod(pod: dict[str, Any]) -> list[str]:
    return ["pod", pod["metadata"]["name"], f"--namespace={pod['metadata']['namespace']}"]


def _set_ready(status: str, named: list[str], kubeconfig: Path, **more: str) -> None:
    """Write the condition Ready as the controller manager does."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition: dict[str, Any] = {"type": "Ready", "status": status, "lastTransitionTime": now, **more}
    patch = json.dumps({"status": {"conditions": [condition]}})
    kubectl(kubeconfig, "patch", *named, "--subresource=status", "--type=strategic", f"--patch={patch}")
