"""Faults that the check `weights` finds."""

from rayhelm.live.doctor.facts import Object
from shared.plant import Plant

_JOB: Object = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "planted-weights", "namespace": "lab"},
    "spec": {
        # No controller of the cluster touches it.
        "managedBy": "rayhelm.dev/planted",
        "template": {
            "metadata": {"labels": {"rayhelm.dev/role": "download"}},
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "download", "image": "rayproject/ray-llm:2.60.0-py312-cu130"}],
            },
        },
    },
    "status": {
        "failed": 7,
        "startTime": "2026-01-01T00:00:00Z",
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "reason": "BackoffLimitExceeded",
                "message": "Job has reached the specified backoff limit",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
            for kind in ("FailureTarget", "Failed")
        ],
    },
}

PLANTS = (
    Plant("A download of weights failed", "BackoffLimitExceeded", "Job lab/planted-weights", create=(_JOB,)),
    Plant(
        "A claim has a StorageClass that does not exist",
        "phase Pending, StorageClass absent",
        "PersistentVolumeClaim lab/planted",
        create=(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "planted", "namespace": "lab", "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {
                    "storageClassName": "absent",
                    "accessModes": ["ReadWriteMany"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
                "status": {"phase": "Pending"},
            },
        ),
        is_only_recorded=True,
    ),
    Plant(
        "A pod waits for a volume that another node has",
        "Multi-Attach error",
        "Pod lab/planted",
        create=(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": "planted-volume", "namespace": "lab"},
                "involvedObject": {"kind": "Pod", "namespace": "lab", "name": "planted"},
                "type": "Warning",
                "reason": "FailedAttachVolume",
                "message": 'Multi-Attach error for volume "pvc-1" Volume is already exclusively attached to one'
                " node and can't be attached to another",
            },
        ),
    ),
)
