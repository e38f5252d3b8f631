"""The ways in: the Service, and a route with TLS from outside."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.values.ray_service.base import Name, Port, Text, Values

__all__ = ["Exposure", "Service"]

Hostname = Annotated[str, Field(pattern=r"^(\*\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]


class Service(Values):
    """The Service in front of the pods. Keys pass it in clear text: for callers outside use `exposure`."""

    type: Literal["ClusterIP", "LoadBalancer", "NodePort"] = "ClusterIP"
    """Kind of the Service."""
    port: Port = 80
    """Its port."""
    annotations: dict[str, Text] = {}
    """Annotations, as clouds want them for their load balancers."""


class ParentRef(Values):
    """The Gateway that a route hangs on; its listener holds the certificate."""

    name: Name | Literal[""] = ""
    """Name of the Gateway; required by `HTTPRoute`."""
    namespace: Name | Literal[""] = ""
    """Its namespace; empty for the release's own."""
    section_name: Name | Literal[""] = ""
    """Its listener; empty for all of them. Name the one with TLS."""


class HttpRoute(Values):
    """Gateway API. The route waits for as long as the gateway does."""

    parent: ParentRef = ParentRef()
    """The Gateway."""


class Ingress(Values):
    """Ingress. Its controller has to let long streams and large bodies through: its own annotations say how."""

    class_name: str = ""
    """IngressClass; empty for the cluster's default."""
    tls_secret: str = ""
    """Secret with the certificate; required, because keys would travel in clear text."""
    tls_reason: str = ""
    """Instead of `tlsSecret`: where the certificate comes from otherwise."""


class Exposure(Values):
    """A route from outside of the cluster."""

    kind: Literal["None", "HTTPRoute", "Ingress"] = "None"
    """`None`: only from inside of the cluster."""
    hosts: list[Hostname] = []
    """Host names; required for a route."""
    annotations: dict[str, Text] = {}
    """Annotations of the route."""
    http_route: HttpRoute = HttpRoute()
    """With `kind: HTTPRoute`."""
    ingress: Ingress = Ingress()
    """With `kind: Ingress`."""
