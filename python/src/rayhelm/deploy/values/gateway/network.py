"""NetworkPolicy and DNS of the gateway."""

from typing import Annotated

from pydantic import Field

from rayhelm.deploy.values.common.base import Cidr, Name, Values
from rayhelm.deploy.values.common.network import Dns, Peer

__all__ = ["AllowedClient", "NetworkPolicy", "Resolvers"]


class AllowedClient(Peer):
    """Pods or addresses that may connect to the gateway."""

    cidrs: list[Cidr] = []
    """Addresses outside the cluster: of clients, of a load balancer, or of the nodes if the Service replaces client
    addresses with theirs (`externalTrafficPolicy: Cluster`)."""


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
    unknown_name_seconds: Annotated[int, Field(ge=1, le=86_400)] = 300
    """Seconds for which the last address of an endpoint stays valid when DNS reports that its name does not exist. That
    happens while its Service is replaced. Kubernetes can give the address to another Service meanwhile."""
