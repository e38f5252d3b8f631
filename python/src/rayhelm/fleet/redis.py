"""The Redis for the fault tolerance of the Ray head, and its addresses."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from rayhelm.errors import Fix
from rayhelm.fleet.base import ListOf, Record, Refusal, short
from rayhelm.fleet.names import Name, SecretName

__all__ = ["Cidr", "Redis", "SecretKey"]

_ADDRESS = re.compile(r"(rediss://)?(\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9.-]+)):(?P<port>[0-9]{1,5})")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.IGNORECASE)


class SecretKey(Record):
    """One key of an existing Secret; rayhelm never writes Secrets."""

    name: SecretName
    """Name of the Secret."""
    key: str = Field(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253, examples=["token"])
    """Key in it."""


def _cidr(text: str) -> str:
    try:
        return str(ip_network(text))
    except ValueError as error:
        raise Refusal(f"`{short(text)}` is not a CIDR ({error})", _find_block(text)) from None


def _find_block(text: str) -> Fix:
    """Return the block of addresses that a text with an address inside of it names, such as 10.0.0.1/8."""
    try:
        return Fix("", str(ip_network(text, strict=False)), "all addresses of this block")
    except ValueError:
        return Fix("", "10.0.0.1/32", "an example")


Cidr = Annotated[str, AfterValidator(_cidr), Field(examples=["10.0.0.1/32"])]
"""A CIDR."""


def _address(text: str) -> str:
    refusal = Refusal(
        f"`{short(text)}` is not the address of a Redis",
        Fix("", "redis.ray-state:6379", "host:port or [IPv6]:port; with rediss:// in front for TLS"),
    )
    found = _ADDRESS.fullmatch(text)
    if not found or not 1 <= int(found["port"]) <= 65535:
        raise refusal
    if found["six"] or re.fullmatch(r"[0-9.]+", found["host"]):
        try:
            ip_address(found["six"] or found["host"])
        except ValueError:
            raise refusal from None
    elif not all(_LABEL.fullmatch(label) for label in found["host"].split(".")):
        raise refusal
    return text


class Redis(Record):
    """A Redis that keeps the state of the Ray head, so that the service survives the loss of the head."""

    address: Annotated[str, AfterValidator(_address)] = Field(examples=["redis.ray-state:6379"])
    """`host:port`, with `rediss://` in front for TLS."""
    namespace: Name | None = Field(default=None, examples=["ray-state"])
    """Namespace of a Redis in this cluster. For a Redis outside the cluster use `cidrs` instead."""
    cidrs: ListOf[Cidr] = ()
    """CIDRs of a Redis outside the cluster, if `address` is a host name; the Ray head may reach these."""
    pod_labels: dict[str, str] = Field(default={}, examples=[{"app": "redis"}])
    """Labels of the pods of a Redis in this cluster. With them chart `tenant` lets only heads of its tenant connect to
    Redis, by a NetworkPolicy in the namespace of Redis, which has to exist."""
    username: str | None = Field(default=None, pattern=r"^[^\s]+$", max_length=253, examples=["ray"])
    """User of Redis, if its access control list has one for this owner."""
    password_secret: SecretKey | None = None
    """Secret that holds its password."""

    @model_validator(mode="after")
    def _check_location(self) -> Self:
        if self.namespace and self.cidrs:
            raise Refusal(
                "`namespace` is for a Redis in this cluster, `cidrs` for one outside: keep one", Fix.removal("cidrs")
            )
        if not (self.peer_namespace or self.blocks):
            raise Refusal(
                f"the NetworkPolicy cannot allow egress to the host name `{short(self.host)}`; use `namespace` or"
                " `cidrs`",
                Fix("namespace", "ray-state", "for a Redis in this cluster; or cidrs: [10.0.0.5/32] for one outside"),
            )
        return self

    @property
    def host(self) -> str:
        """Host name or IP address, without brackets."""
        found = _ADDRESS.fullmatch(self.address)
        assert found
        return found["six"] or found["host"]

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def peer_namespace(self) -> str:
        """Namespace of a Redis in this cluster, from `namespace` or `service.namespace[.svc[.domain]]`; else empty."""
        labels = self.host.split(".")
        if self.namespace or self.cidrs or self._ip or len(labels) < 2 or labels[2:3] not in ([], ["svc"]):
            return self.namespace or ""
        return labels[1]

    @property
    def blocks(self) -> tuple[str, ...]:
        """CIDRs of a Redis outside the cluster, from `cidrs` or the IP address in `address`."""
        if self.cidrs or self.namespace or not self._ip:
            return self.cidrs
        return (f"{self._ip}/{self._ip.max_prefixlen}",)

    @property
    def _ip(self) -> IPv4Address | IPv6Address | None:
        try:
            return ip_address(self.host)
        except ValueError:
            return None
