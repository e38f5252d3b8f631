"""NetworkPolicies of the pods of the chart: the doctor, a managed adapter, and the probe."""

from rayhelm.deploy.values.common.base import Cidr, Name, Values
from rayhelm.deploy.values.common.network import ApiServerEgress, Dns, Peer, PrometheusEgress

__all__ = ["ApiServerClient", "PlatformNetworkPolicy"]


class ApiServerClient(Peer):
    """Pods or addresses through which the API server connects to a managed adapter."""

    cidrs: list[Cidr] = []
    """Addresses, such as those of the nodes of the control plane."""


class PlatformNetworkPolicy(Values):
    """NetworkPolicies of the doctor, of a managed adapter, and of the probe: deny by default in both directions, then
    allow what is listed here."""

    enabled: bool = True
    """`false`: no NetworkPolicies. Every pod can read the metrics of the doctor then, which name objects and Secrets of
    all tenants, and `reason` is required."""
    reason: str = ""
    """Reason why there are none. Required when `enabled` is off."""
    api_server: ApiServerEgress = ApiServerEgress()
    """Kubernetes API, which all of these pods call but those that measure, and which calls a managed adapter."""
    api_server_clients: dict[Name, ApiServerClient] = {}
    """Other ends through which the API server calls a managed adapter, by name. A managed control plane often connects
    through pods (`konnectivity-agent` in `kube-system`) or other addresses than those of `apiServer`. If none of them
    is right, the APIService is not available, and no namespace can be deleted."""
    prometheus: Peer = Peer(namespace="monitoring")
    """Pods that may read the metrics of the doctor."""
    prometheus_api: PrometheusEgress = PrometheusEgress()
    """API of Prometheus, which the doctor and a managed adapter query."""
    dns: Dns = Dns()
    """DNS of the cluster."""
