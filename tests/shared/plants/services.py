"""Faults that the check `services` finds."""

from rayhelm.live.doctor.facts import PART_OF
from shared.plant import Plant

PLANTS = (
    Plant(
        "A Service selects no pod",
        "no ready endpoint",
        "Service gateway/planted",
        create=(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "planted", "namespace": "gateway", "labels": dict([PART_OF])},
                "spec": {"selector": {"app": "nothing"}, "ports": [{"port": 80}]},
            },
        ),
    ),
)
