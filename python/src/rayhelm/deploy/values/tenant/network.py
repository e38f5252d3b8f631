"""NetworkPolicies of the namespace, in addition to those that other charts make for their own pods."""

from typing import Annotated

from pydantic import Field

from rayhelm.deploy.values.common.base import Cidr, Name, Port, Text, Values
from rayhelm.deploy.values.common.network import Dns, Peer
from rayhelm.facts.versions import get_kuberay_namespace

__all__ = ["AllowedPeers", "ExtraPolicy", "TenantEgress", "TenantNetworkPolicy", "TenantRedis"]


class TenantEgress(Values):
    """Pods or addresses that the team's own pods may connect to."""

    peer: Peer = Peer()
    """Pods."""
    cidrs: list[Cidr] = []
    """Addresses."""
    ports: Annotated[list[Port], Field(min_length=1)]
    """TCP ports."""


class ExtraPolicyTarget(Values):
    """Pods or addresses that the selected pods may connect to."""

    peer: Peer = Peer()
    """Pods."""
    cidrs: list[Cidr] = []
    """Addresses."""


class ExtraPolicyIngress(Values):
    """Connections to the selected pods."""

    from_: Annotated[dict[Name, Peer], Field(alias="from")] = {}
    """Allowed clients, by name. Each needs a namespace or labels."""
    ports: list[Port] = []
    """TCP ports of the selected pods that the clients may reach; empty for all ports."""


class ExtraPolicyEgress(Values):
    """Connections from the selected pods."""

    to: dict[Name, ExtraPolicyTarget] = {}
    """Allowed targets, by name. Each needs a namespace, labels or addresses."""
    ports: list[Port] = []
    """TCP ports of the targets; required beside `to`."""


class ExtraPolicy(Values):
    """One NetworkPolicy for some pods of the namespace: a database, a cache, or the gateway pods that KubeRay creates
    for an incremental upgrade. A peer in the tenant's own namespace gets a policy for its end too."""

    pod_labels: dict[str, Text]
    """Labels of the pods that the policy selects. Required and not empty: without labels it would select every pod of
    the namespace."""
    ingress: ExtraPolicyIngress = ExtraPolicyIngress()
    """Connections to these pods."""
    egress: ExtraPolicyEgress = ExtraPolicyEgress()
    """Connections from these pods."""


NamespacePort = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(:[0-9]{1,5})?$", max_length=69)]
CidrPort = Annotated[str, Field(pattern=r"^[0-9A-Fa-f.:]+/[0-9]{1,3}(:[0-9]{1,5})?$", max_length=50)]


class AllowedPeers(Values):
    """Peers of NetworkPolicies that members of the tenant install, those of `ray-service` among them. The policy
    `tenant-network` refuses others. An entry without a port allows all ports."""

    namespaces: list[NamespacePort] = [
        "gateway:8000",
        "kube-system:53",
        f"{get_kuberay_namespace()}:8265",
        "monitoring:44217",
        "monitoring:44227",
        "monitoring:8080",
        "monitoring:9090",
    ]
    """Namespaces with a port, in addition to the tenant's own: of gateways, DNS, the KubeRay operator, Prometheus, and
    of `egress` and `extraPolicies`. The port is that of the pods that accept the connection."""
    cidrs: list[CidrPort] = []
    """Addresses with a port (`10.0.0.1/32:443`): of the API server for the autoscaler, and of what workers connect to.
    Pods that download weights may connect to any."""


class TenantRedis(Values):
    """Redis of the tenant's Ray clusters. With its password code can run in all of them."""

    peer: Peer = Peer()
    """Pods of Redis, with labels, because the policy isolates them. The namespace has to exist. Empty: no policy."""
    port: Port = 6379
    """Port of these pods."""


class TenantNetworkPolicy(Values):
    """NetworkPolicies. One denies all traffic of every pod in the namespace; the others allow what is listed here."""

    dns: Dns = Dns()
    """The cluster's DNS. Every pod may query it."""
    egress: dict[Name, TenantEgress] = {}
    """What the team's own pods may connect to, by name, for example the gateway. It does not apply to pods of a
    RayService: `ray-service` makes the policies for those."""
    extra_policies: dict[Name, ExtraPolicy] = {}
    """Further NetworkPolicies for some pods of the namespace, by name."""
    redis: TenantRedis = TenantRedis()
    """Pods of the tenant's Redis in this cluster: only heads of the tenant's Ray clusters may connect to them, and pods
    with the same labels. Other clients, such as an exporter of metrics, need a NetworkPolicy of their own."""
    allowed: AllowedPeers = AllowedPeers()
    """Connections that NetworkPolicies of members may open."""
    pod_networks: list[Text] = []
    """Networks of Multus that pods may join: allowed values of the annotation `k8s.v1.cni.cncf.io/networks`.
    NetworkPolicies do not apply to them."""
