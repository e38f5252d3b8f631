"""Faults that the check `kuberay-operator` finds."""

from rayhelm.live.doctor.facts import Object
from shared.plant import Plant

_OPERATOR: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "kuberay-operator",
        "namespace": "gateway",
        "labels": {"app.kubernetes.io/name": "kuberay-operator"},
    },
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "planted-operator"}},
        "template": {
            "metadata": {"labels": {"app": "planted-operator"}},
            "spec": {
                "nodeSelector": {"planted": "nowhere"},
                "containers": [{"name": "operator", "image": "quay.io/kuberay/operator:v1.4.0"}],
            },
        },
    },
}

PLANTS = (
    Plant("The operator has no pod", "0 of 1 replicas", "Deployment gateway/kuberay-operator", create=(_OPERATOR,)),
    Plant(
        "The operator is of an untested version",
        r"KubeRay 1\.4\.0; tested",
        "Deployment gateway/kuberay-operator",
        create=(_OPERATOR,),
    ),
    Plant(
        "The operator runs in another namespace than the fleet file says",
        r"runs in namespace gateway; the fleet file says kuberay-system",
        "Deployment gateway/kuberay-operator",
        create=(_OPERATOR,),
    ),
)
