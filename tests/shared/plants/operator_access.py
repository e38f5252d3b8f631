"""Faults that the check `operator-access` finds."""

from rayhelm.live.doctor.facts import Object
from shared.plant import Plant

_RENAMED: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "planted-ray-operator", "namespace": "gateway"},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"app.kubernetes.io/component": "planted"}},
        "template": {
            "metadata": {"labels": {"app.kubernetes.io/component": "planted"}},
            "spec": {"containers": [{"name": "operator", "image": "quay.io/kuberay/operator:v1.6.2"}]},
        },
    },
}

PLANTS = (
    Plant(
        "The operator has another namespace and other labels than the values say",
        r"port 8265 is open for pods of namespace kuberay-system with labels .*planted",
        "NetworkPolicy */*-head",
        create=(_RENAMED,),
    ),
)
