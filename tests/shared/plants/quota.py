"""Faults that the check `quota` finds."""

from rayhelm.live.cluster.kinds import RESOURCE_QUOTAS
from shared.plant import Change, Plant

_CLAIMS = "count/resourceclaims.resource.k8s.io"
PLANTS = (
    Plant(
        "The quota has fewer GPUs than the plan",
        r"hard requests\.nvidia\.com/gpu is 1; the plan needs 2",
        "ResourceQuota lab/lab",
        change=(Change(RESOURCE_QUOTAS, "lab", "lab", {"spec": {"hard": {"requests.nvidia.com/gpu": "1"}}}),),
    ),
    Plant(
        "The API server refused a pod for its quota",
        "exceeded quota",
        "RayCluster lab/planted",
        create=(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": "planted-quota", "namespace": "lab"},
                "involvedObject": {"kind": "RayCluster", "namespace": "lab", "name": "planted"},
                "type": "Warning",
                "reason": "FailedToCreateWorkerPod",
                "message": 'pods "w" is forbidden: exceeded quota: lab, requested: requests.nvidia.com/gpu=1',
            },
        ),
    ),
    Plant(
        "The quota has no ResourceClaim for GPUs of a device class",
        "device class gpu.nvidia.com serves nvidia.com/gpu, of which pods of the namespace may have [1-9]",
        "ResourceQuota lab/lab",
        create=(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceClass",
                "metadata": {"name": "gpu.nvidia.com"},
                "spec": {"extendedResourceName": "nvidia.com/gpu"},
            },
        ),
        change=(Change(RESOURCE_QUOTAS, "lab", "lab", {"spec": {"hard": {_CLAIMS: "0"}}}),),
        # The scheduler of the test cluster would give its GPUs by claims.
        is_only_recorded=True,
    ),
    Plant(
        "The quota refused the ResourceClaim of a pod",
        "creates a ResourceClaim for the GPUs of this pod",
        "Pod lab/planted",
        create=(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": "planted-claim", "namespace": "lab"},
                "involvedObject": {"kind": "Pod", "namespace": "lab", "name": "planted"},
                "type": "Warning",
                "reason": "FailedScheduling",
                "message": 'resourceclaims.resource.k8s.io "w" is forbidden: exceeded quota: lab-denied, requested:'
                f" {_CLAIMS}=1, used: {_CLAIMS}=0, limited: {_CLAIMS}=0",
            },
        ),
    ),
)
