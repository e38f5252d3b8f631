"""Labels that scrapes add to the series, and the groups that queries sum by.

| form of scrape | namespace, pod | rayhelm_dev_service, _worker_group, _tenant, _gateway |
|---|---|---|
| `scraping.kind: PodMonitor` of our charts | Prometheus operator | `podTargetLabels` |
| `scraping.kind: ScrapeConfig`, the ConfigMap of chart platform | relabeling | `labelmap` |
| annotations `prometheus.io/scrape` | job `kubernetes-pods` of Prometheus' chart | its `labelmap` of all pod labels |
| static configuration, `rayhelm up` | `labels` of the static target | `labels` of the static target |

A scrape by annotations reads one port of a pod, so it has no metrics of Ray's autoscaler. `cluster` is an external
label or a label of the remote storage; without it all queries work, because a matcher `=~".*"` and a label list accept
a missing label.
"""

from collections.abc import Sequence

__all__ = [
    "CLUSTER",
    "DEPLOYMENT",
    "GATEWAY",
    "GATEWAY_LABEL",
    "GPU",
    "MODEL",
    "MODEL_AND_TENANT",
    "NAMESPACE",
    "OWNER_LABEL",
    "POD",
    "SERVICE",
    "SERVICE_LABEL",
    "TARGET_LABELS",
    "TENANT",
    "VERSION",
    "WORKER_GROUP_LABEL",
    "By",
]

By = Sequence[str]
"""Labels that a query sums by."""

SERVICE_LABEL = "rayhelm_dev_service"
WORKER_GROUP_LABEL = "rayhelm_dev_worker_group"
OWNER_LABEL = "rayhelm_dev_tenant"
"""Tenant that owns the service. The label `tenant` of gateway metrics is the tenant that sends requests."""
GATEWAY_LABEL = "rayhelm_dev_gateway"

CLUSTER: By = ("cluster",)
NAMESPACE: By = (*CLUSTER, "namespace")
SERVICE: By = (*NAMESPACE, SERVICE_LABEL)
MODEL: By = (*SERVICE, "model_name")
MODEL_AND_TENANT: By = (*MODEL, "tenant")
"""`tenant` sends requests to the model."""
DEPLOYMENT: By = (*SERVICE, "application", "deployment")
POD: By = (*SERVICE, "pod")
GATEWAY: By = (*NAMESPACE, GATEWAY_LABEL)
VERSION: By = (*GATEWAY, "proxy")
"""`proxy` is MODEL:VERSION."""
TENANT: By = (*GATEWAY, "tenant")
GPU: By = (*CLUSTER, "node", "gpu_id", "gpu_model")
"""Labels that `gpu` gives the series of all vendors."""

_OF_PROMETHEUS = frozenset({"cluster", "job", "instance"})
_OF_PODS = _OF_PROMETHEUS | {"namespace", "pod", "container", "endpoint"}
_OF_SERVICES = _OF_PODS | {SERVICE_LABEL, WORKER_GROUP_LABEL, OWNER_LABEL}

TARGET_LABELS: dict[str, frozenset[str]] = {
    "service": _OF_SERVICES,
    "gateway": _OF_PODS | {GATEWAY_LABEL},
    "operator": _OF_PODS | {"exported_namespace", "exported_pod", "exported_container"},
    "node": _OF_PODS | {"node", "exported_namespace", "exported_pod", "exported_container"},
    "cluster": _OF_PODS | {"exported_namespace", "exported_pod", "exported_container"},
    "prometheus": _OF_SERVICES | {GATEWAY_LABEL},
    "rules": _OF_PROMETHEUS,
}
"""Labels that the scrape adds, by what is scraped."""
