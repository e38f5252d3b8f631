"""Service of the gateway, and its exposure outside the cluster."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from rayhelm.deploy.values.common.base import Cidr, Name, Port, Text, Values
from rayhelm.deploy.values.gateway.tenants import SecretName

__all__ = ["ClientAddress", "Exposure", "GatewayService"]

Hostname = Annotated[str, Field(pattern=r"^(\*\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]


def _check_unique(names: list[str]) -> list[str]:
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"`{twice[0]}` is listed twice, and Kubernetes refuses such a pod")
    return names


UniqueSecretNames = Annotated[
    list[SecretName], Field(json_schema_extra={"uniqueItems": True}), AfterValidator(_check_unique)
]


class GatewayService(Values):
    """Service of the gateway. It has TLS with `exposure.kind: TLS` only."""

    type: Literal["ClusterIP", "LoadBalancer", "NodePort"] = "ClusterIP"
    """Type of the Service."""
    port: Port = 80
    """Port of the Service."""
    annotations: dict[str, Text] = {}
    """Annotations, for example for a cloud load balancer."""
    external_traffic_policy: Literal["", "Cluster", "Local"] = ""
    """`Local`: traffic from outside goes to pods of the node that it reached only, and keeps the client's address.
    `Cluster`: to all pods, from the address of a node. Empty: the default of Kubernetes, `Cluster`. Not with type
    `ClusterIP`."""
    load_balancer_source_ranges: list[Cidr] = []
    """Addresses that may connect to the load balancer, where the cloud supports it. Only with type `LoadBalancer`.
    `networkPolicy.allowedClients` decides at the pods, by the addresses that they see."""


class ClientAddress(Values):
    """Address of the client behind a load balancer, in the access log and for `limits.sourceIdlePercent`. Only named
    load balancers are believed."""

    proxy_protocol_cidrs: list[Cidr] = []
    """Addresses of load balancers that send the PROXY protocol, version 1 or 2. They have to send it on each
    connection, health checks too. Other clients cannot send it. Empty: none may."""
    forwarded_for_cidrs: list[Cidr] = []
    """Addresses of HTTP load balancers and Ingress controllers whose `X-Forwarded-For` is believed: the client is the
    last address of it that is not in this list, of three at most. Their connections have many clients, so
    `limits.sourceIdlePercent` does not hold for them. Empty: the header of every client is ignored."""
    pass_on: bool = False
    """Send `X-Forwarded-For` with this one address to model servers and remote gateways; the gateway removes every
    other one. Ray Serve logs it with `FORWARDED_ALLOW_IPS: "*"` and `RAY_SERVE_LOG_CLIENT_ADDRESS: "1"` in `env` of its
    pods."""


class ParentRef(Values):
    """Gateway of the route; its listener has the certificate."""

    name: Name | Literal[""] = ""
    """Name of the Gateway; required with `kind: HTTPRoute`."""
    namespace: Name | Literal[""] = ""
    """Namespace of the Gateway; empty: that of the release."""
    section_name: Name | Literal[""] = ""
    """Listener of the Gateway; empty: all listeners. Set the one with TLS."""


class HttpRouteExposure(Values):
    """HTTPRoute of the Gateway API."""

    parent: ParentRef = ParentRef()
    """Gateway of the route."""
    timeouts: bool = True
    """Write timeouts of `0s`, which turn those of the Gateway off; those of HAProxy apply. Controllers on Envoy end
    responses after 15 s without them. GKE's controller refuses a route that has timeouts: with false the route has
    none, and a `GCPBackendPolicy` with `timeoutSec` for the Service is needed, because its default is 30 s."""


class IngressExposure(Values):
    """Ingress. Set `exposure.annotations` so that its controller passes long streams and large bodies."""

    class_name: str = ""
    """IngressClass; empty: the default of the cluster."""
    tls_secret: str = ""
    """TLS Secret of the Ingress; required unless `tlsReason` is set, because API keys must not travel in clear text."""
    tls_reason: str = ""
    """Instead of `tlsSecret`: where the certificate comes from."""


class TlsExposure(Values):
    """TLS of the gateway itself, from version 1.2 on."""

    secret_names: UniqueSecretNames = []
    """TLS Secrets (`tls.crt` and `tls.key`) in the gateway's namespace; required with `kind: TLS`. The name that a
    client sends selects the certificate; without a match it is the first one. Pods wait until the Secrets exist, and
    use a renewed certificate without a restart."""


class Exposure(Values):
    """Exposure of the gateway outside the cluster, with TLS."""

    kind: Literal["None", "HTTPRoute", "Ingress", "TLS"] = "None"
    """`None`: the gateway is reachable from inside the cluster only. `TLS`: the gateway itself accepts TLS, and nothing
    else; combine it with `service.type: LoadBalancer`."""
    hosts: list[Hostname] = []
    """Host names; required unless `kind` is `None`."""
    annotations: dict[str, Text] = {}
    """Annotations of the Ingress or HTTPRoute."""
    http_route: HttpRouteExposure = HttpRouteExposure()
    """Settings of `kind: HTTPRoute`."""
    ingress: IngressExposure = IngressExposure()
    """Settings of `kind: Ingress`."""
    tls: TlsExposure = TlsExposure()
    """Settings of `kind: TLS`."""
