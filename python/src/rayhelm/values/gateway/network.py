"""NetworkPolicy and DNS of the gateway."""

from typing import Annotated

from pydantic import Field

from rayhelm.values.ray_service.base import Cidr, Name, Text, Values

__all__ = ["AllowedClient", "NetworkPolicy", "Peer", "Resolvers"]


class Peer(Values):
    """Pods in a namespace."""

    namespace: str = ""
    """Namespace of the pods (its label `kubernetes.io/metadata.name`). Empty: no pods."""
    pod_labels: dict[str, Text] = {}
    """Labels of the pods. Empty: all pods of the namespace."""


class AllowedClient(Peer):
    """Pods or addresses that may connect to the gateway."""

    cidrs: list[Cidr] = []
    """Addresses outside the cluster: of clients, of a load balancer, or of the nodes if the Service replaces client
    addresses with theirs (`externalTrafficPolicy: Cluster`)."""


class Dns(Values):
    """DNS servers of the cluster."""

    peer: Peer = Peer(namespace="kube-system", pod_labels={"k8s-app": "kube-dns"})
    """Pods of the DNS server."""
    cidrs: list[Cidr] = []
    """Addresses of a DNS server in the host network, such as `169.254.20.10/32` for NodeLocal DNSCache."""


class NetworkPolicy(Values):
    """NetworkPolicy of the pods: ingress from `allowedClients` and Prometheus, egress to endpoints and DNS."""

    enabled: bool = True
    """`false`: no NetworkPolicy. Every pod can connect to the gateway, and the gateway to every address."""
    reason: str = ""
    """Why there is no NetworkPolicy; required with `enabled: false`."""
    allowed_clients: dict[Name, AllowedClient] = {}
    """Clients that may connect, by name: the controller of the Ingress or HTTPRoute, applications in the cluster."""
    prometheus: Peer = Peer(namespace="monitoring")
    """Pods that may connect to the metrics port."""
    dns: Dns = Dns()
    """DNS servers of the cluster."""


class Resolvers(Values):
    """DNS lookups of endpoints. HAProxy repeats them while it runs. When DNS fails, the last addresses stay valid."""

    nameservers: list[Annotated[str, Field(pattern=r"^[0-9A-Fa-f.:]+:[0-9]+$")]] = []
    """DNS servers as ADDRESS:PORT. Empty: those of the pod's /etc/resolv.conf."""
    valid_seconds: Annotated[int, Field(ge=1)] = 10
    """Seconds until HAProxy looks up a name again."""
