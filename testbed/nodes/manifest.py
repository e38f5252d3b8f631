"""A host as the manifest of a Node for KWOK."""

from typing import Any

from testbed.nodes.hosts import RDMA_SHARES, Host
from testbed.nodes.labels import labels_of

__all__ = ["KUBELET", "POOL", "SIMULATED", "node"]

POOL = "testbed.rayhelm.dev/pool"
"""Label with the pool of a node."""
SIMULATED = "testbed.rayhelm.dev/simulated"
"""Label of all simulated objects: `kubectl delete nodes,pv,storageclasses -l testbed.rayhelm.dev/simulated`."""
KUBELET = "testbed.rayhelm.dev/kubelet"
"""Label that KWOK selects its nodes by. A node without it has no kubelet."""

PODS = 110
"""Maximum number of pods: the default of the kubelet."""
DISK = "1Ti"
"""Ephemeral storage: enough for the caches and spilled objects of any pod. Plans do not count it."""


def node(host: Host) -> dict[str, Any]:
    """Return the manifest, status included."""
    capacity = {
        "cpu": f"{round(host.size.cpus * 1000)}m",
        "memory": str(host.size.memory),
        "ephemeral-storage": DISK,
        "pods": str(PODS),
        **_list_devices(host),
    }
    taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in host.taints]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": host.name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": _build_labels(host),
        },
        **({"spec": {"taints": taints}} if taints else {}),
        "status": {"capacity": capacity, "allocatable": dict(capacity)},
    }


def _list_devices(host: Host) -> dict[str, str]:
    offered = host.parts or ({host.gpu_kind.resource: host.gpus} if host.gpu_kind else {})
    devices = {resource: str(count) for resource, count in offered.items()}
    if host.rdma_resource:
        devices[host.rdma_resource] = str(RDMA_SHARES)
    return devices


def _build_labels(host: Host) -> dict[str, str]:
    kind = f"{host.gpu_kind.id}-x{host.gpus}" if host.gpu_kind else "cpu"
    return {
        "kubernetes.io/hostname": host.name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": f"simulated.{kind}",
        # Hosts of a pool share a network, so the pool stands for the zone.
        "topology.kubernetes.io/region": host.region,
        "topology.kubernetes.io/zone": f"{host.region}.{host.pool}"[:63],
        **(labels_of(host.gpu_kind, host.gpus, host.mig, host.slices) if host.gpu_kind else {}),
        **host.labels,
        POOL: host.pool,
        SIMULATED: "true",
        KUBELET: "alive",
    }
