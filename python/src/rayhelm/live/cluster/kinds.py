"""Kinds of objects that rayhelm reads from an API server, with their paths."""

from typing import NamedTuple

__all__ = [
    "API_SERVICES",
    "CERTIFICATES",
    "CONFIG_MAPS",
    "CUSTOM_RESOURCE_DEFINITIONS",
    "DEPLOYMENTS",
    "DEVICE_CLASSES",
    "ENDPOINT_SLICES",
    "EVENTS",
    "HORIZONTAL_POD_AUTOSCALERS",
    "JOBS",
    "LIMIT_RANGES",
    "NAMESPACES",
    "NETWORK_POLICIES",
    "NODES",
    "PERSISTENT_VOLUME_CLAIMS",
    "PODS",
    "POD_DISRUPTION_BUDGETS",
    "RAY_CLUSTERS",
    "RAY_SERVICES",
    "RENDERED",
    "RESOURCE_QUOTAS",
    "RESOURCE_SLICES",
    "SCALED_OBJECTS",
    "SECRETS",
    "SERVICES",
    "Kind",
]


class Kind(NamedTuple):
    """One kind of objects."""

    name: str
    """As in `kind:`."""
    group: str
    """API group; empty for the core."""
    version: str
    plural: str
    """As in RBAC and in the path."""
    is_namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """As in `kubectl get`: `pods`, `rayservices.ray.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "") -> str:
        """Return the path of a list, or of the object `name`."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        parts += ["namespaces", namespace] if namespace else []
        return "/" + "/".join([*parts, self.plural, *([name] if name else [])])


NAMESPACES = Kind("Namespace", "", "v1", "namespaces", is_namespaced=False)
NODES = Kind("Node", "", "v1", "nodes", is_namespaced=False)
PODS = Kind("Pod", "", "v1", "pods")
SERVICES = Kind("Service", "", "v1", "services")
CONFIG_MAPS = Kind("ConfigMap", "", "v1", "configmaps")
SECRETS = Kind("Secret", "", "v1", "secrets")
LIMIT_RANGES = Kind("LimitRange", "", "v1", "limitranges")
API_SERVICES = Kind("APIService", "apiregistration.k8s.io", "v1", "apiservices", is_namespaced=False)
EVENTS = Kind("Event", "", "v1", "events")
RESOURCE_QUOTAS = Kind("ResourceQuota", "", "v1", "resourcequotas")
PERSISTENT_VOLUME_CLAIMS = Kind("PersistentVolumeClaim", "", "v1", "persistentvolumeclaims")
ENDPOINT_SLICES = Kind("EndpointSlice", "discovery.k8s.io", "v1", "endpointslices")
DEPLOYMENTS = Kind("Deployment", "apps", "v1", "deployments")
JOBS = Kind("Job", "batch", "v1", "jobs")
HORIZONTAL_POD_AUTOSCALERS = Kind("HorizontalPodAutoscaler", "autoscaling", "v2", "horizontalpodautoscalers")
POD_DISRUPTION_BUDGETS = Kind("PodDisruptionBudget", "policy", "v1", "poddisruptionbudgets")
CUSTOM_RESOURCE_DEFINITIONS = Kind(
    "CustomResourceDefinition", "apiextensions.k8s.io", "v1", "customresourcedefinitions", is_namespaced=False
)
RAY_SERVICES = Kind("RayService", "ray.io", "v1", "rayservices")
RAY_CLUSTERS = Kind("RayCluster", "ray.io", "v1", "rayclusters")
SCALED_OBJECTS = Kind("ScaledObject", "keda.sh", "v1alpha1", "scaledobjects")
DEVICE_CLASSES = Kind("DeviceClass", "resource.k8s.io", "v1", "deviceclasses", is_namespaced=False)
CERTIFICATES = Kind("Certificate", "cert-manager.io", "v1", "certificates")
RESOURCE_SLICES = tuple(
    Kind("ResourceSlice", "resource.k8s.io", version, "resourceslices", is_namespaced=False)
    for version in ("v1", "v1beta2", "v1beta1")
)
"""The kind in each version, the newest first: v1 since Kubernetes 1.34."""

NETWORK_POLICIES = Kind("NetworkPolicy", "networking.k8s.io", "v1", "networkpolicies")
_ROLES = Kind("Role", "rbac.authorization.k8s.io", "v1", "roles")
_ROLE_BINDINGS = Kind("RoleBinding", "rbac.authorization.k8s.io", "v1", "rolebindings")
_ADMISSION = "admissionregistration.k8s.io"
RENDERED = (
    NAMESPACES,
    SERVICES,
    CONFIG_MAPS,
    RESOURCE_QUOTAS,
    LIMIT_RANGES,
    PERSISTENT_VOLUME_CLAIMS,
    Kind("ServiceAccount", "", "v1", "serviceaccounts"),
    DEPLOYMENTS,
    Kind("CronJob", "batch", "v1", "cronjobs"),
    HORIZONTAL_POD_AUTOSCALERS,
    POD_DISRUPTION_BUDGETS,
    NETWORK_POLICIES,
    _ROLES,
    _ROLE_BINDINGS,
    Kind("Ingress", "networking.k8s.io", "v1", "ingresses"),
    Kind("HTTPRoute", "gateway.networking.k8s.io", "v1", "httproutes"),
    Kind("PriorityClass", "scheduling.k8s.io", "v1", "priorityclasses", is_namespaced=False),
    Kind("RuntimeClass", "node.k8s.io", "v1", "runtimeclasses", is_namespaced=False),
    Kind("ValidatingAdmissionPolicy", _ADMISSION, "v1", "validatingadmissionpolicies", is_namespaced=False),
    Kind(
        "ValidatingAdmissionPolicyBinding", _ADMISSION, "v1", "validatingadmissionpolicybindings", is_namespaced=False
    ),
    Kind("PodMonitor", "monitoring.coreos.com", "v1", "podmonitors"),
    Kind("ScrapeConfig", "monitoring.coreos.com", "v1alpha1", "scrapeconfigs"),
    Kind("PrometheusRule", "monitoring.coreos.com", "v1", "prometheusrules"),
    Kind("ClusterRole", "rbac.authorization.k8s.io", "v1", "clusterroles", is_namespaced=False),
    Kind("ClusterRoleBinding", "rbac.authorization.k8s.io", "v1", "clusterrolebindings", is_namespaced=False),
    API_SERVICES,
    Kind("ExternalSecret", "external-secrets.io", "v1", "externalsecrets"),
    Kind("LocalQueue", "kueue.x-k8s.io", "v1beta1", "localqueues"),
    Kind("ClusterPolicy", "nvidia.com", "v1", "clusterpolicies", is_namespaced=False),
    Kind("DeviceConfig", "amd.com", "v1alpha1", "deviceconfigs"),
    Kind("GpuDevicePlugin", "deviceplugin.intel.com", "v1", "gpudeviceplugins", is_namespaced=False),
    Kind("GrafanaDashboard", "grafana.integreatly.org", "v1beta1", "grafanadashboards"),
    RAY_SERVICES,
    SCALED_OBJECTS,
)
"""Kinds of the charts that `rayhelm doctor` compares with the cluster."""
