"""The gateway of a cluster: its namespace, its pods, and how clients reach it."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from rayhelm.errors import Fix
from rayhelm.fleet.base import ListOf, Record, Refusal
from rayhelm.fleet.ingress_annotations import build_nginx_ingress
from rayhelm.fleet.labels import LabelKey
from rayhelm.fleet.models import Replicas
from rayhelm.fleet.names import DnsName, Name, SecretName
from rayhelm.fleet.overrides import ChartValues
from rayhelm.fleet.redis import Cidr
from rayhelm.fleet.remotes import Remote

__all__ = ["Gateway"]

_ROUTE = Fix("ingress", build_nginx_ingress(), "or `httpRoute` for the Gateway API, or `tls`")


class Ingress(Record):
    """An Ingress with TLS."""

    tls_secret: SecretName = Field(examples=["ai-tls"])
    """Secret with the certificate, in the namespace of the gateway. TLS is required, because requests carry API
    keys."""
    class_name: DnsName | None = Field(default=None, examples=["nginx"])
    """IngressClass; the cluster's default when left out."""
    annotations: dict[LabelKey, str] = Field(
        default={}, examples=[{"nginx.ingress.kubernetes.io/proxy-read-timeout": "1300"}]
    )
    """Annotations for its controller, for example to allow long streams and large bodies."""


class HttpRoute(Record):
    """A route of the Gateway API. TLS is that of the Gateway's listener."""

    gateway: Name = Field(examples=["shared"])
    """Existing Gateway that the route belongs to."""
    namespace: Name | None = Field(default=None, examples=["infra"])
    """Namespace of that Gateway; default: the namespace of the gateway of rayhelm."""
    listener: Name | None = Field(default=None, examples=["https"])
    """Listener with TLS; default: all listeners."""
    timeouts: bool = True
    """Turn timeouts of the Gateway off in the route. Set false on GKE, whose controller refuses a route with timeouts,
    and set `timeoutSec` in a `GCPBackendPolicy`."""


class Tls(Record):
    """TLS of the gateway itself, with a Service that is reachable from outside the cluster on port 443. Its pods then
    accept nothing else, inside the cluster too."""

    secrets: ListOf[SecretName] = Field(min_length=1, examples=[["ai-tls"]])
    """TLS Secrets (`tls.crt` and `tls.key`) in the namespace of the gateway. The name that a client sends selects the
    certificate; without a match it is the first one. Pods wait until the Secrets exist, and use a renewed certificate
    without a restart."""
    cidrs: ListOf[Cidr] = Field(default=(), examples=[["203.0.113.0/24"]])
    """Addresses of clients outside the cluster, as pods see them; the NetworkPolicy allows them to connect. `0.0.0.0/0`
    and `::/0` are all. The Service has `externalTrafficPolicy: Cluster`, with which kube-proxy can replace the address
    of a client with that of a node: then add the addresses of the nodes. A load balancer that replaces the address of
    the client needs its own address here."""
    service: Literal["LoadBalancer", "NodePort", "ClusterIP"] = "LoadBalancer"
    """Type of the Service."""
    annotations: dict[LabelKey, str] = Field(
        default={}, examples=[{"service.beta.kubernetes.io/aws-load-balancer-scheme": "internet-facing"}]
    )
    """Annotations of the Service, for example for a cloud load balancer."""

    @field_validator("secrets")
    @classmethod
    def _check_secrets(cls, secrets: tuple[str, ...]) -> tuple[str, ...]:
        unique = list(dict.fromkeys(secrets))
        if len(unique) < len(secrets):
            twice = next(name for name in unique if secrets.count(name) > 1)
            raise Refusal(f"`{twice}` is listed twice, and Kubernetes refuses such a pod", Fix("", unique))
        return secrets

    @model_validator(mode="after")
    def _check_clients(self) -> Self:
        if self.service != "ClusterIP" and not self.cidrs:
            raise Refusal(
                f"`cidrs` is empty, so the NetworkPolicy refuses every client of a Service of type {self.service}",
                Fix("cidrs", ["203.0.113.0/24"], "addresses of your clients; 0.0.0.0/0 for all"),
            )
        return self


class Gateway(Record):
    """The gateway of a cluster. It is rendered if tenants may call a model; without `tenants` use a gateway of your
    own."""

    namespace: Name = "gateway"
    """Namespace of its pods. Only these pods and the namespaces of aliases may call the services."""
    host: DnsName | None = None
    """Host name for clients outside the cluster; needs `ingress`, `httpRoute` or `tls`."""
    ingress: Ingress | None = None
    """Ingress for clients outside the cluster."""
    http_route: HttpRoute | None = None
    """Route of the Gateway API for clients outside the cluster."""
    tls: Tls | None = Field(default=None, examples=[{"secrets": ["ai-tls"], "cidrs": ["203.0.113.0/24"]}])
    """TLS of the gateway itself for clients outside the cluster, instead of `ingress` and `httpRoute`."""
    allowed_clients: ListOf[Name] = Field(default=(), examples=[["ingress-nginx", "apps"]])
    """Namespaces whose pods may connect: the controller behind `ingress` or `httpRoute`, and applications."""
    replicas: Annotated[int, Field(ge=1, le=1000)] | Replicas | None = Field(default=None, examples=[1])
    """Number of pods, or the bounds of autoscaling; default: two to six."""
    requests_in_flight: Annotated[int, Field(ge=1, le=100_000)] | None = Field(default=None, examples=[100])
    """Autoscaling target: requests in flight per pod, in addition to CPU. Needs `prometheus`, and the Prometheus
    adapter with the rules of the chart `platform`."""
    remotes: dict[Name, Remote] = Field(
        default={},
        examples=[{"edge": {"certificateAuthority": {"configMap": "gateway-ca"}, "cidrs": ["203.0.113.10/32"]}}],
    )
    """Gateways of other clusters, by the name of the cluster. This gateway answers for their models too. The gateway
    there accepts the requests of this one; to forward in both directions, each cluster names the other one."""
    values: ChartValues = Field(default={}, examples=[{"timeouts": {"serverSeconds": 1800}}])
    """Overrides: values of the chart `gateway`, merged last, such as Secrets of the External Secrets Operator. What the
    plan decides is refused."""

    @model_validator(mode="after")
    def _check_route(self) -> Self:
        routes = {"ingress": self.ingress, "httpRoute": self.http_route, "tls": self.tls}
        set_ = [name for name, route in routes.items() if route]
        if len(set_) > 1:
            raise Refusal(f"`{set_[0]}` and `{set_[1]}` are both set; a host has one route", Fix.removal(set_[1]))
        if self.host and not set_:
            raise Refusal(
                "`host` needs `ingress`, `httpRoute` or `tls`, which route its requests to the gateway", _ROUTE
            )
        if set_ and not self.host:
            raise Refusal(f"`{set_[0]}` needs `host`, the name that clients use", Fix("host", "ai.example.com"))
        if set_ and not self.allowed_clients and not (self.tls and self.tls.cidrs):
            refused = "all clients" if self.tls else "the controller"
            raise Refusal(
                f"`allowedClients` is empty, so the NetworkPolicy refuses {refused} of `{set_[0]}`",
                Fix("allowedClients", ["apps" if self.tls else "ingress-nginx"], "namespace of those pods"),
            )
        return self

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        if self.requests_in_flight and isinstance(self.replicas, int):
            raise Refusal(
                "`requestsInFlight` is a target of autoscaling, and `replicas` is a fixed number",
                Fix("replicas", {"min": self.replicas, "max": 3 * self.replicas}),
            )
        return self

    @model_validator(mode="after")
    def _check_replicas(self) -> Self:
        if isinstance(self.replicas, Replicas) and not self.replicas.min:
            raise Refusal(
                "`replicas.min` is 0; a gateway needs a pod",
                Fix("replicas", {"min": 1, "max": self.replicas.max}, "the least"),
            )
        return self
