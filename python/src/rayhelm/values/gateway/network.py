"""Who may reach whom, and the DNS."""

from typing import Annotated

from pydantic import Field

from rayhelm.values.ray_service.base import Cidr, Name, Text, Values

__all__ = ["AllowedClient", "NetworkPolicy", "Peer", "Resolvers"]


class Peer(Values):
    """Pods in a namespace."""

    namespace: str = ""
    """Namespace (its `kubernetes.io/metadata.name`); empty for nobody."""
    pod_labels: dict[str, Text] = {}
    """Labels of the pods; empty for all pods of the namespace."""


class AllowedClient(Peer):
    """Somebody who may knock."""

    cidrs: list[Cidr] = []
    """Addresses outside of the cluster, for a `service.type` or an `exposure` that leads there: of clients, of a load
    balancer, or of the nodes where it hides clients behind them (`externalTrafficPolicy: Cluster`)."""


class Dns(Values):
    """The cluster's DNS."""

    peer: Peer = Peer(namespace="kube-system", pod_labels={"k8s-app": "kube-dns"})
    """Its pods."""
    cidrs: list[Cidr] = []
    """Its addresses where it runs in the host's network: `169.254.20.10/32` for NodeLocal DNSCache."""


class NetworkPolicy(Values):
    """A NetworkPolicy around the gateway's pods: in from the callers named here, out to the endpoints and the DNS."""

    enabled: bool = True
    """Off: every pod may knock, and a gateway that was broken into reaches everything; say why below."""
    reason: str = ""
    """Why there is none; required when it is off."""
    allowed_clients: dict[Name, AllowedClient] = {}
    """Who may call the gateway, by name: the controller behind `exposure`, and applications inside the cluster."""
    prometheus: Peer = Peer(namespace="monitoring")
    """Who may scrape the metrics port."""
    dns: Dns = Dns()
    """The cluster's DNS."""


class Resolvers(Values):
    """The DNS that HAProxy asks, again and again, for the addresses of endpoints. A DNS that does not answer empties no
    backend: the last addresses stay in force."""

    nameservers: list[Annotated[str, Field(pattern=r"^[0-9A-Fa-f.:]+:[0-9]+$")]] = []
    """Addresses with ports; empty for those of the pod's /etc/resolv.conf."""
    valid_seconds: Annotated[int, Field(ge=1)] = 10
    """Seconds for which an answer holds."""
