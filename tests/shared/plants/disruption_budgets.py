"""Faults that the check `disruption-budgets` finds."""

from rayhelm.live.cluster.kinds import NODES
from rayhelm.live.doctor.facts import Object
from shared.plant import Change, Plant


def _budget(name: str, group: str = "lab-a5000", **spec: object) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "lab"},
        "spec": {"selector": {"matchLabels": {"rayhelm.dev/worker-group": group}}, **spec},
    }


PLANTS = (
    Plant(
        "A budget of Ray pods has a percentage",
        "maxUnavailable: 50%",
        "PodDisruptionBudget lab/planted",
        create=(_budget("planted", maxUnavailable="50%"),),
    ),
    Plant(
        "Two budgets select one pod",
        "budgets select it: planted, (.*, )?second",
        "Pod lab/*-lab-a5000-worker-*",
        create=(_budget("planted", maxUnavailable="50%"), _budget("second", minAvailable=1)),
    ),
    Plant(
        "A drain waits for a single worker",
        "PodDisruptionBudget lab/drained allows no disruption",
        "Node a4000",
        create=(_budget("drained", "lab-a4000", minAvailable=1),),
        change=(Change(NODES, "a4000", "", {"spec": {"unschedulable": True}}),),
    ),
)
