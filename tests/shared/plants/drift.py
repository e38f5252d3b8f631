"""Faults that the check `drift` finds."""

from rayhelm.live.cluster.kinds import CONFIG_MAPS, POD_DISRUPTION_BUDGETS, RESOURCE_QUOTAS
from rayhelm.live.doctor.facts import PART_OF
from shared.plant import Change, Plant

PLANTS = (
    Plant(
        "A rendered object was deleted",
        "it does not exist; gateway/gateway.yaml renders it",
        "PodDisruptionBudget gateway/gateway",
        delete=((POD_DISRUPTION_BUDGETS, "gateway", "gateway"),),
    ),
    Plant(
        "The configuration of the gateway was edited in the cluster",
        r"data\.access\.map: lab:other stable instead of lab:qwen3-32b stable",
        "ConfigMap gateway/gateway",
        change=(Change(CONFIG_MAPS, "gateway", "gateway", {"data": {"access.map": "lab:other stable\n"}}),),
    ),
    Plant(
        "A quota was edited in the cluster",
        r"spec\.hard\.pods: 7 instead of 128",
        "ResourceQuota lab/lab",
        change=(Change(RESOURCE_QUOTAS, "lab", "lab", {"spec": {"hard": {"pods": "7"}}}),),
    ),
    Plant(
        "A release was removed from the fleet file and not from the cluster",
        "the fleet does not render it",
        "ResourceQuota gateway/planted",
        create=(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "planted", "namespace": "gateway", "labels": dict([PART_OF])},
                "spec": {"hard": {"count/rayservices.ray.io": "8"}},
            },
        ),
    ),
)
