"""Gateways of other clusters of the fleet, and the way to them."""

from collections.abc import Mapping
from math import inf
from typing import Annotated, Self

from pydantic import Field, model_validator

from rayhelm.errors import Fix
from rayhelm.fleet.base import ListOf, Record, Refusal
from rayhelm.fleet.names import DnsName, SecretName
from rayhelm.fleet.redis import Cidr
from rayhelm.fleet.units import Duration, PricePerGigabyte

__all__ = ["Remote", "RemoteAuthority", "rank_remotes"]


class RemoteAuthority(Record):
    """Certificates that sign the certificate of a server, in the namespace of the gateway that verifies it."""

    config_map: SecretName | None = Field(default=None, examples=["gateway-ca"])
    """ConfigMap with the certificates."""
    secret: SecretName | None = Field(default=None, examples=["gateway-ca"])
    """Secret with them, instead of `configMap`."""
    key: str = Field(default="ca.crt", pattern=r"^[-._a-zA-Z0-9]+$", max_length=253, examples=["ca.crt"])
    """Entry in its data."""

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if bool(self.config_map) == bool(self.secret):
            raise Refusal(
                "it needs exactly one of `configMap` and `secret`: with them the gateway verifies the certificate",
                Fix.removal("secret") if self.secret else Fix("configMap", "gateway-ca"),
            )
        return self


class Remote(Record):
    """The gateway of another cluster. All requests for its models that this cluster does not serve are forwarded, and
    those for models of both when no endpoint is available here, or above `models.NAME.spillAbove`.
    `models.NAME.forwarding: none` prevents both."""

    certificate_authority: RemoteAuthority = Field(examples=[{"configMap": "gateway-ca"}])
    """Certificates that sign its certificate. Requests never go there in plain text."""
    cidrs: ListOf[Cidr] = Field(min_length=1, examples=[["203.0.113.10/32"]])
    """Addresses of its host; the NetworkPolicy allows egress to them."""
    host: DnsName | None = Field(default=None, examples=["edge.internal.example.com"])
    """DNS name; default: `gateway.host` of that cluster."""
    port: Annotated[int, Field(ge=1, le=65535)] = 443
    """Port of its TLS listener, Ingress or Gateway."""
    server_name: DnsName | None = Field(default=None, examples=["ai.example.com"])
    """Name that its certificate must have; default: `host`."""
    secret: SecretName | None = Field(default=None, examples=["gateway-remote-edge"])
    """Secret with the key that this gateway sends; default: `gateway-remote-` and the name of that cluster."""
    priority: Annotated[int, Field(ge=1, le=100)] | None = None
    """Of several remote gateways, an available one with the lowest number gets the request; default: by `latency`, the
    shortest first. Gateways with the same latency, and those without one, have the same number and share requests."""
    weight: Annotated[int, Field(ge=1, le=256)] | None = None
    """Share of the requests that this gateway forwards to it, relative to the others of the same `priority`. Default:
    for each model the planned capacity of the other cluster, 100 for the largest."""
    latency: Duration | None = Field(default=None, examples=["12ms"])
    """Round trip to it. The plan adds it to the time to first token of forwarded requests; without it that is
    unknown."""
    price_per_gigabyte: PricePerGigabyte | None = Field(default=None, examples=["0.02 USD/GB"])
    """Price of the traffic between both clusters, in either direction. Without it the cost of the way is unknown."""


def rank_remotes(remotes: Mapping[str, Remote]) -> dict[str, int]:
    """Return the priority of each remote gateway: its own, or one more than the number of shorter latencies."""
    latencies = sorted({remote.latency or inf for remote in remotes.values()})
    return {name: remote.priority or 1 + latencies.index(remote.latency or inf) for name, remote in remotes.items()}
