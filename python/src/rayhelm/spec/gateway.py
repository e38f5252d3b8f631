"""The one door of a cluster: where it stands, and how clients come to it."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from rayhelm.spec.base import ListOf, Record, Refusal
from rayhelm.spec.labels import LabelKey
from rayhelm.spec.models import Replicas
from rayhelm.spec.names import DnsName, Name, SecretName

__all__ = ["Gateway"]

_ROUTE = (
    "ingress: {className: nginx, tlsSecret: ai-tls}\n"
    "# or, with the Gateway API: httpRoute: {gateway: shared, namespace: infra, listener: https}"
)


class Ingress(Record):
    """An Ingress with TLS."""

    tls_secret: SecretName = Field(examples=["ai-tls"])
    """Secret with the certificate, in the gateway's namespace: keys pass here, and never in clear text."""
    class_name: DnsName | None = Field(default=None, examples=["nginx"])
    """IngressClass; the cluster's default when left out."""
    annotations: dict[LabelKey, str] = Field(
        default={}, examples=[{"nginx.ingress.kubernetes.io/proxy-read-timeout": "1300"}]
    )
    """What its controller has to be told, to let long streams and large bodies through."""


class HttpRoute(Record):
    """A route of the Gateway API. TLS is that of the Gateway's listener."""

    gateway: Name = Field(examples=["shared"])
    """Gateway that the route hangs on; it is there already."""
    namespace: Name | None = Field(default=None, examples=["infra"])
    """Its namespace; that of our gateway when left out."""
    listener: Name | None = Field(default=None, examples=["https"])
    """Its listener with TLS; all of its listeners when left out."""


class Gateway(Record):
    """The one door of a cluster. It is made where tenants may call something; without `tenants` bring your own."""

    namespace: Name = "gateway"
    """Namespace of its pods: only they, and the namespaces of aliases, may call the services."""
    host: DnsName | None = None
    """Host name that clients outside of the cluster use; with `ingress` or `httpRoute`."""
    ingress: Ingress | None = None
    """The way in from outside, as an Ingress."""
    http_route: HttpRoute | None = None
    """The way in from outside, as a route of the Gateway API."""
    allowed_clients: ListOf[Name] = Field(default=(), examples=[["ingress-nginx", "apps"]])
    """Namespaces whose pods may knock: of the controller behind `ingress` or `httpRoute`, and of applications."""
    replicas: Annotated[int, Field(ge=1, le=1000)] | Replicas | None = Field(default=None, examples=[1])
    """Pods, or the bounds of autoscaling; two to six when left out."""
    requests_in_flight: Annotated[int, Field(ge=1, le=100_000)] | None = Field(default=None, examples=[100])
    """Requests in flight for each pod that autoscaling aims at, beside CPU. Needs `prometheus`, and the Prometheus
    adapter with the rules of the chart `platform`."""

    @model_validator(mode="after")
    def _one_way_in_with_a_host(self) -> Self:
        routes = [route for route in (self.ingress, self.http_route) if route]
        if len(routes) == 2:
            raise Refusal("`ingress` beside `httpRoute`: a host has one way in", "keep one of the two")
        if self.host and not routes:
            raise Refusal("`host` leads nowhere: nobody is told to bring its requests here", _ROUTE)
        if routes and not self.host:
            raise Refusal("a way in from outside needs the name that clients use", "host: ai.example.com")
        if routes and not self.allowed_clients:
            raise Refusal(
                "the gateway lets in nobody who is not named, so its way in from outside would lead nowhere",
                "allowedClients: [ingress-nginx]   # namespace of the pods behind `ingress` or `httpRoute`",
            )
        return self

    @model_validator(mode="after")
    def _aims_only_where_it_scales(self) -> Self:
        if self.requests_in_flight and isinstance(self.replicas, int):
            raise Refusal(
                "`requestsInFlight` is an aim of autoscaling, and `replicas` fixes the pods",
                f"replicas: {{min: {self.replicas}, max: {3 * self.replicas}}}",
            )
        return self

    @model_validator(mode="after")
    def _never_without_pods(self) -> Self:
        if isinstance(self.replicas, Replicas) and not self.replicas.min:
            raise Refusal("a gateway without pods answers nobody", f"replicas: {{min: 1, max: {self.replicas.max}}}")
        return self
