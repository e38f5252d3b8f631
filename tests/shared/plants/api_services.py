"""Faults that the check `api-services` finds."""

from shared.plant import Plant

PLANTS = (
    Plant(
        "The metrics API has no Service behind it",
        "Available is False",
        "APIService v1beta1.external.metrics.k8s.io",
        create=(
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": "v1beta1.external.metrics.k8s.io"},
                "spec": {
                    "group": "external.metrics.k8s.io",
                    "version": "v1beta1",
                    "service": {"namespace": "gateway", "name": "gone"},
                },
                "status": {"conditions": [{"type": "Available", "status": "False", "reason": "ServiceNotFound"}]},
            },
        ),
        is_only_recorded=True,
    ),
)
