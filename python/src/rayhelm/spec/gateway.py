"""The gateway of a cluster: its namespace, its pods, and how clients reach it."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from rayhelm.errors import Fix
from rayhelm.spec.base import ListOf, Record, Refusal
from rayhelm.spec.labels import LabelKey
from rayhelm.spec.models import Replicas
from rayhelm.spec.names import DnsName, Name, SecretName
from rayhelm.spec.overrides import ChartValues
from rayhelm.spec.remotes import Remote

__all__ = ["Gateway"]

_ROUTE = Fix("ingress", {"className": "nginx", "tlsSecret": "ai-tls"}, "or `httpRoute`, for the Gateway API")


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


class Gateway(Record):
    """The gateway of a cluster. It is rendered if tenants may call a model; without `tenants` use a gateway of your
    own."""

    namespace: Name = "gateway"
    """Namespace of its pods. Only these pods and the namespaces of aliases may call the services."""
    host: DnsName | None = None
    """Host name for clients outside the cluster; needs `ingress` or `httpRoute`."""
    ingress: Ingress | None = None
    """Ingress for clients outside the cluster."""
    http_route: HttpRoute | None = None
    """Route of the Gateway API for clients outside the cluster."""
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
    """Gateways of other clusters that serve the same models, by the name of the cluster. The gateway there accepts the
    requests of this one; to forward in both directions, each cluster names the other one."""
    values: ChartValues = Field(default={}, examples=[{"timeouts": {"serverSeconds": 1800}}])
    """Overrides: values of the chart `gateway`, merged last. What the plan decides is refused."""

    @model_validator(mode="after")
    def _check_route(self) -> Self:
        routes = [route for route in (self.ingress, self.http_route) if route]
        if len(routes) == 2:
            raise Refusal("`ingress` and `httpRoute` are both set; a host has one route", Fix.removal("httpRoute"))
        if self.host and not routes:
            raise Refusal("`host` needs `ingress` or `httpRoute`, which route its requests to the gateway", _ROUTE)
        if routes and not self.host:
            raise Refusal(
                "`ingress` and `httpRoute` need `host`, the name that clients use", Fix("host", "ai.example.com")
            )
        if routes and not self.allowed_clients:
            raise Refusal(
                "`allowedClients` is empty, so the NetworkPolicy refuses the controller of `ingress` or `httpRoute`",
                Fix("allowedClients", ["ingress-nginx"], "namespace of the pods of that controller"),
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
                "`replicas.min` is 0; a gateway needs a pod", Fix("replicas", {"min": 1, "max": self.replicas.max})
            )
        return self
