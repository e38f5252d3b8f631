"""Faults that the check `drivers` finds."""

from rayhelm.live.cluster.kinds import NODES, RAY_CLUSTERS
from shared.plant import Change, Plant

PLANTS = (
    Plant(
        "A driver is too old for the CUDA of the image",
        "driver 535; the image has CUDA 13, which needs 580",
        "Node a4000",
        change=(Change(NODES, "a4000", "", {"metadata": {"labels": {"nvidia.com/cuda.driver-version.major": "535"}}}),),
    ),
    Plant(
        "The pods of a RayCluster have two versions of Ray",
        "rayVersion is 2.59.0; the image of group head",
        "RayCluster lab/*",
        change=(Change(RAY_CLUSTERS, "*", "lab", {"spec": {"rayVersion": "2.59.0"}}),),
        is_only_recorded=True,
    ),
)
