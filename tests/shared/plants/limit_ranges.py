"""Faults that the check `limit-ranges` finds."""

from shared.plant import Plant

PLANTS = (
    Plant(
        "The least memory of a container is above that of KubeRay's init container",
        r"min\.memory is 512Mi",
        "LimitRange lab/planted",
        create=(
            {
                "apiVersion": "v1",
                "kind": "LimitRange",
                "metadata": {"name": "planted", "namespace": "lab"},
                "spec": {"limits": [{"type": "Container", "min": {"memory": "512Mi"}}]},
            },
        ),
    ),
)
