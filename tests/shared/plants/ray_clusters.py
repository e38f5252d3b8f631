"""Faults that the check `ray-clusters` finds."""

from rayhelm.live.cluster.kinds import PODS, RAY_CLUSTERS
from shared.plant import Change, Plant

_PENDING = {
    "status": {
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "0/4 nodes are available: 2 Insufficient nvidia.com/gpu.",
            }
        ]
    }
}

PLANTS = (
    Plant(
        "A worker has no node",
        r"1 of 2 workers are ready|no node has what the pod asks for .*Insufficient nvidia",
        "RayCluster lab/*",
        change=(
            Change(RAY_CLUSTERS, "*", "lab", {"status": {"readyWorkerReplicas": 1}}, is_status=True),
            Change(PODS, "*-lab-a4000-worker-*", "lab", _PENDING, is_status=True),
        ),
        is_only_recorded=True,
    ),
    Plant(
        "A RayCluster is suspended",
        "the cluster is suspended",
        "RayCluster lab/*",
        change=(Change(RAY_CLUSTERS, "*", "lab", {"spec": {"suspend": True}}),),
        is_only_recorded=True,
    ),
)
