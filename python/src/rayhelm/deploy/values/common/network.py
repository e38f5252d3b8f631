"""Peers of NetworkPolicies."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Cidr, Port, Values
from rayhelm.deploy.values.common.labels import Labels, Namespace

__all__ = ["ApiServerEgress", "Dns", "Peer", "PrometheusEgress"]


class Peer(Values):
    """Pods in a namespace."""

    namespace: Namespace | Literal[""] | None = None
    """Namespace of the pods (its label `kubernetes.io/metadata.name`). Absent: with `podLabels` the namespace of the
    NetworkPolicy, otherwise no pods. Empty: no pods."""
    pod_labels: Labels = {}
    """Labels of the pods. Empty: all pods of `namespace`."""


class Dns(Values):
    """DNS servers of the cluster."""

    peer: Peer = Peer(namespace="kube-system", pod_labels={"k8s-app": "kube-dns"})
    """Pods of the DNS server."""
    cidrs: list[Cidr] = []
    """Addresses of a DNS server in the host network, such as `169.254.20.10/32` for NodeLocal DNSCache."""


class ApiServerEgress(Values):
    """Kubernetes API."""

    cidrs: list[Cidr] = []
    """CIDRs of the API server. Required, because they are not known when the chart renders. Find them with `kubectl get
    endpointslices -n default -l kubernetes.io/service-name=kubernetes`."""
    ports: Annotated[list[Port], Field(min_length=1)] = [443, 6443]
    """Ports of the API server. Some network plugins check the port of the Service, others the port of the endpoint."""


class PrometheusEgress(Values):
    """API of Prometheus."""

    peer: Peer = Peer(namespace="monitoring")
    """Pods of Prometheus."""
    cidrs: list[Cidr] = []
    """CIDRs of a Prometheus outside this cluster."""
    port: Port = 9090
    """Port of the Prometheus pods. Network policies check the port of the pod, not of the Service."""
