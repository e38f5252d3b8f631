"""Gateways of other clusters, and the models that they serve."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Cidr, Name, Port, Values
from rayhelm.deploy.values.gateway.models import Host, ModelId
from rayhelm.deploy.values.gateway.tenants import SecretKey, SecretName

__all__ = ["CertificateAuthority", "RemoteGateway", "UpstreamTls"]

Weight = Annotated[int, Field(ge=1, le=256)]
VersionNames = Annotated[list[Name], Field(min_length=1)]


class CertificateAuthority(Values):
    """Certificates that sign the certificate of the other side. A change takes effect in new pods only: add the new
    one beside the old one before a rotation."""

    config_map_name: SecretName | Literal[""] = ""
    """Name of the ConfigMap."""
    secret_name: SecretName | Literal[""] = ""
    """Instead of `configMapName`: name of the Secret."""
    key: SecretKey = "ca.crt"
    """Key in its data."""


class RemoteGateway(Values):
    """The gateway of another cluster. Requests reach it through TLS with a verified certificate, never in plain text.
    A request that comes from another gateway is never forwarded again."""

    host: Host = ""
    """DNS name or IPv4 address of the remote gateway; required with `models`."""
    port: Port = 443
    """Port of its TLS listener, Ingress or Gateway."""
    server_name: Host = ""
    """Name that its certificate must have, also sent as SNI and as header Host; empty: `host`."""
    certificate_authority: CertificateAuthority = CertificateAuthority()
    """Certificates that sign its certificate; required with `models`."""
    secret_name: SecretName | Literal[""] = ""
    """Secret with two entries: `key`, the key that this gateway sends, and `accepted`, which has one line for each key
    that it accepts from the remote gateway: `<SHA-256 of the key, hex> <name> [<expiry, RFC 3339>]`. Required. Both
    are read again while the gateway runs."""
    priority: Annotated[int, Field(ge=1, le=100)] = 1
    """Of several remote gateways, an available one with the lowest number gets the request."""
    weight: Weight = 100
    """Share of the requests, relative to the other available remote gateways with the same `priority`. The retry of a
    failed request goes to the one with the largest share."""
    model_weights: dict[ModelId, Weight] = {}
    """The same for single models, by name."""
    models: dict[ModelId, VersionNames] = {}
    """Versions that it serves, by model. Their requests are forwarded when no endpoint is available here, above
    `models.*.spillAbove`, and always if the version has no endpoint here. Empty: this gateway accepts its requests and
    forwards none."""
    cidrs: list[Cidr] = []
    """Addresses of `host`; the NetworkPolicy allows egress to them."""


class UpstreamTls(Values):
    """TLS from the gateway to endpoints with `tls: true`."""

    certificate_authority: CertificateAuthority = CertificateAuthority()
    """Certificates that sign the certificates of these endpoints; required if there is one."""
