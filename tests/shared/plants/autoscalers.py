"""Faults that the check `autoscalers` finds."""

from rayhelm.live.doctor.facts import Object
from shared.plant import Plant


def _hpa(name: str, target: Object, metric: Object) -> Object:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": "gateway"},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 2, "metrics": [metric]},
    }


_CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}

_EXTERNAL = {
    "type": "External",
    "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "5"}},
}

_TOTAL = {
    "type": "External",
    "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "5"}},
}


def _deployment(name: str) -> Object:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}


PLANTS = (
    Plant(
        "An HPA has an external target of type Value",
        "metric queue has a target of type Value: 5",
        "HorizontalPodAutoscaler gateway/planted-total",
        create=(_hpa("planted-total", _deployment("gateway"), _TOTAL),),
    ),
    Plant(
        "An HPA's target does not exist",
        "Deployment gone does not exist; there are: .*gateway",
        "HorizontalPodAutoscaler gateway/planted-gone",
        create=(_hpa("planted-gone", _deployment("gone"), _CPU),),
    ),
    Plant(
        "An HPA scales by a metric that nothing serves",
        r"type External, and the API server has no external\.metrics\.k8s\.io",
        "HorizontalPodAutoscaler gateway/planted-series",
        create=(_hpa("planted-series", _deployment("gateway"), _EXTERNAL),),
    ),
    Plant(
        "An HPA's target is a RayCluster",
        "no kind of KubeRay has a scale subresource",
        "HorizontalPodAutoscaler gateway/planted-ray",
        create=(_hpa("planted-ray", {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "one"}, _CPU),),
    ),
    Plant(
        "A ScaledObject's target does not exist",
        "Deployment gone does not exist",
        "ScaledObject gateway/planted",
        create=(
            {
                "apiVersion": "keda.sh/v1alpha1",
                "kind": "ScaledObject",
                "metadata": {"name": "planted", "namespace": "gateway"},
                "spec": {
                    "scaleTargetRef": {"name": "gone"},
                    "triggers": [{"type": "cron", "metadata": {}}],
                },
            },
        ),
    ),
    Plant(
        "The KEDA operator does not run",
        "the KEDA operator has not seen it",
        "ScaledObject gateway/planted",
        create=(
            {
                "apiVersion": "keda.sh/v1alpha1",
                "kind": "ScaledObject",
                "metadata": {"name": "planted", "namespace": "gateway"},
                "spec": {
                    "scaleTargetRef": {"name": "gone"},
                    "triggers": [{"type": "cron", "metadata": {}}],
                },
            },
        ),
    ),
)
