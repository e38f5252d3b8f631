"""A simulated node dies, and comes back."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from testbed.nodes.kubectl import kubectl
from testbed.nodes.manifest import KUBELET

__all__ = ["lose_node", "start_kubelet", "stop_kubelet"]


def stop_kubelet(node: str, kubeconfig: Path, *, noticed: bool = True) -> None:
    """From now on nothing happens on the node: its pods neither start nor end.

    The controller manager notices 50 s after the last heartbeat: the node is Unknown, its pods are not Ready. With
    `noticed` that is written here at once, so that no test waits for it. The taint and the pods' eviction after
    `tolerationSeconds` (300, unless a pod says otherwise) are the cluster's own doing.

    Raises RayhelmError where there is no such node."""
    kubectl(kubeconfig, "label", "node", node, f"{KUBELET}-")
    if not noticed:
        return
    _set_ready("Unknown", ["node", node], kubeconfig, reason="NodeStatusUnknown")
    for pod in _pods_on(node, kubeconfig):
        _set_ready("False", _named(pod), kubeconfig)


def start_kubelet(node: str, kubeconfig: Path) -> None:
    """The node is Ready again within seconds, and with it the pods that are still there."""
    kubectl(kubeconfig, "label", "--overwrite", "node", node, f"{KUBELET}=alive")


def lose_node(node: str, kubeconfig: Path) -> None:
    """The node is gone for good, and its pods with it: Kubernetes' garbage collector would end them 75 s later.

    Raises RayhelmError where there is no such node."""
    kubectl(kubeconfig, "delete", "node", node)
    for pod in _pods_on(node, kubeconfig):
        # No kubelet is left to report that it has ended.
        kubectl(kubeconfig, "delete", *_named(pod), "--force", "--grace-period=0", "--ignore-not-found")


def _pods_on(node: str, kubeconfig: Path) -> list[dict[str, Any]]:
    pods = kubectl(kubeconfig, "get", "pods", "-A", f"--field-selector=spec.nodeName={node}", "--output=json")
    return [pod for pod in json.loads(pods)["items"] if pod["status"].get("phase") == "Running"]


def _named(pod: dict[str, Any]) -> list[str]:
    return ["pod", pod["metadata"]["name"], f"--namespace={pod['metadata']['namespace']}"]


def _set_ready(status: str, named: list[str], kubeconfig: Path, **more: str) -> None:
    """Writes the condition Ready as the controller manager does."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition: dict[str, Any] = {"type": "Ready", "status": status, "lastTransitionTime": now, **more}
    patch = json.dumps({"status": {"conditions": [condition]}})
    kubectl(kubeconfig, "patch", *named, "--subresource=status", "--type=strategic", f"--patch={patch}")
