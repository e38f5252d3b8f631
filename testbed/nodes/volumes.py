"""Volumes for claims: the scheduler does not place a pod whose claim has no volume."""

from typing import Any

from rayhelm.fleet.load import LoadedFleet
from testbed.nodes.manifest import SIMULATED
from testbed.nodes.simulated import cluster_of

__all__ = ["volumes"]


def volumes(loaded: LoadedFleet, cluster: str = "", count: int = 16) -> list[dict[str, Any]]:
    """Return the storage class of the cluster's weights, and `count` volumes of it that fit any claim.

    They are created in advance instead of by a provisioner. A stage of KWOK releases the volumes of deleted claims.

    Raises UsageError for a cluster that the fleet does not have."""
    name = loaded.fleet.clusters[cluster_of(loaded, cluster)].weights.storage_class or ""
    return [*([_build_storage_class(name)] if name else []), *(_build_volume(name, index) for index in range(count))]


def _build_storage_class(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "labels": {SIMULATED: "true"}},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "Immediate",
    }


def _build_volume(storage_class: str, index: int) -> dict[str, Any]:
    name = f"simulated-{storage_class or 'default'}-{index}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": {SIMULATED: "true"}},
        "spec": {
            "storageClassName": storage_class,
            "capacity": {"storage": "100Ti"},
            "accessModes": ["ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": {"driver": "simulated.testbed.rayhelm.dev", "volumeHandle": name},
        },
    }
