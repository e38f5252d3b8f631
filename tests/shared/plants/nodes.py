"""Faults that the check `nodes` finds."""

from rayhelm.live.cluster.kinds import NODES
from shared.plant import Change, Plant


def _label(node: str, key: str, value: str) -> Change:
    return Change(NODES, node, "", {"metadata": {"labels": {key: value}}})


PLANTS = (
    Plant(
        "Two nodes of a pool have different drivers",
        r"driver-version\.full: 570\.86\.15 on a4000; 580\.65\.06 on a5000",
        "pool lab",
        change=(
            _label("a4000", "nvidia.com/cuda.driver-version.full", "570.86.15"),
            _label("a5000", "nvidia.com/cuda.driver-version.full", "580.65.06"),
        ),
    ),
    Plant(
        "A node with GPUs offers none",
        "allocatable has no GPU",
        "Node a5000",
        change=(Change(NODES, "a5000", "", {"status": {"allocatable": {"nvidia.com/gpu": "0"}}}, is_status=True),),
    ),
    Plant(
        "A node with GPUs is not Ready",
        "Ready is not set",
        "Node planted",
        create=(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "planted", "labels": {"nvidia.com/gpu.present": "true"}},
                "spec": {"unschedulable": True},
            },
        ),
        is_only_recorded=True,
    ),
    Plant(
        "A pool has fewer nodes than the plan",
        "1 of 2 nodes have its labels: a5000",
        "pool lab",
        change=(_label("a4000", "nvidia.com/gpu.product", "NVIDIA-RTX-4000"),),
        is_only_recorded=True,
    ),
)
