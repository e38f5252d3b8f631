"""Peers of NetworkPolicies."""

from typing import Literal

from rayhelm.values.common.base import Cidr, Values
from rayhelm.values.common.labels import Labels, Namespace

__all__ = ["Dns", "Peer"]


class Peer(Values):
    """Pods in a namespace."""

    namespace: Namespace | Literal[""] = ""
    """Namespace of the pods (its label `kubernetes.io/metadata.name`). Empty: no pods."""
    pod_labels: Labels = {}
    """Labels of the pods. Empty: all pods of the namespace."""


class Dns(Values):
    """DNS servers of the cluster."""

    peer: Peer = Peer(namespace="kube-system", pod_labels={"k8s-app": "kube-dns"})
    """Pods of the DNS server."""
    cidrs: list[Cidr] = []
    """Addresses of a DNS server in the host network, such as `169.254.20.10/32` for NodeLocal DNSCache."""
