"""A simulated node dies, and comes back."""

import json
from datetime import UTC, datetime
from pathlib import Path

from testbed.nodes.kubectl import kubectl
from testbed.nodes.manifest import KUBELET

__all__ = ["start_kubelet", "stop_kubelet"]


def stop_kubelet(node: str, kubeconfig: Path) -> None:
    """From now on nothing happens on the node: its pods neither start nor end, and it is not Ready.

    The controller manager would notice 50 s after the last heartbeat; the condition is written here, so that no test
    waits for that. What follows is the cluster's own doing: the taint, pods that are not Ready, and their eviction
    after `tolerationSeconds`, 300 unless a pod says otherwise."""
    kubectl(kubeconfig, "label", "node", node, f"{KUBELET}-")
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    lost = {
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": now,
    }
    patch = json.dumps({"status": {"conditions": [lost]}})
    kubectl(kubeconfig, "patch", "node", node, "--subresource=status", "--type=strategic", f"--patch={patch}")


def start_kubelet(node: str, kubeconfig: Path) -> None:
    """The node is Ready again within seconds, and with it the pods that are still there."""
    kubectl(kubeconfig, "label", "--overwrite", "node", node, f"{KUBELET}=alive")
