"""The Redis that keeps the state of Ray's head, and where pods may find it."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from rayhelm.spec.base import ListOf, Record, Refusal, short
from rayhelm.spec.names import Name, SecretName

__all__ = ["Cidr", "Redis", "SecretKey"]

_ADDRESS = re.compile(r"(rediss://)?(\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9.-]+)):(?P<port>[0-9]{1,5})")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.IGNORECASE)


class SecretKey(Record):
    """One key of a Secret that exists already; rayhelm never writes a secret."""

    name: SecretName
    """Name of the Secret."""
    key: str = Field(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253, examples=["token"])
    """Key in it."""


def _cidr(text: str) -> str:
    try:
        return str(ip_network(text))
    except ValueError as error:
        raise Refusal(f"`{short(text)}` is not a block of addresses ({error})", "10.0.0.1/32") from None


Cidr = Annotated[str, AfterValidator(_cidr), Field(examples=["10.0.0.1/32"])]
"""A block of addresses."""


def _address(text: str) -> str:
    refusal = Refusal(
        f"`{short(text)}` is not the address of a Redis",
        "address: redis.ray-state:6379   # host:port, [IPv6]:port, or rediss:// in front for TLS",
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
    """A Redis that keeps the state of Ray's head, so that a lost head loses no service."""

    address: Annotated[str, AfterValidator(_address)] = Field(examples=["redis.ray-state:6379"])
    """`host:port`, with `rediss://` in front for TLS."""
    namespace: Name | None = Field(default=None, examples=["ray-state"])
    """Namespace of a Redis in this cluster; with an address outside, leave it out and give `cidrs`."""
    cidrs: ListOf[Cidr] = ()
    """Address blocks of a Redis outside, where `address` is a host name: Ray's head may reach these."""
    password_secret: SecretKey | None = None
    """Secret that holds its password."""

    @model_validator(mode="after")
    def _can_be_reached(self) -> Self:
        if self.namespace and self.cidrs:
            raise Refusal("`namespace` is for a Redis in this cluster, `cidrs` for one outside", "keep one of the two")
        if not (self.peer_namespace or self.blocks):
            raise Refusal(
                f"nobody can tell from `{short(self.host)}` where the network must let Ray's head out to",
                "namespace: ray-state     # a Redis in this cluster\ncidrs: [10.0.0.5/32]     # or one outside",
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
        """Namespace of a Redis in this cluster, given or told by `service.namespace[.svc[.domain]]`; else empty."""
        labels = self.host.split(".")
        if self.namespace or self.cidrs or self._ip or len(labels) < 2 or labels[2:3] not in ([], ["svc"]):
            return self.namespace or ""
        return labels[1]

    @property
    def blocks(self) -> tuple[str, ...]:
        """Address blocks of a Redis outside, given or told by an IP address."""
        if self.cidrs or self.namespace or not self._ip:
            return self.cidrs
        return (f"{self._ip}/{self._ip.max_prefixlen}",)

    @property
    def _ip(self) -> IPv4Address | IPv6Address | None:
        try:
            return ip_address(self.host)
        except ValueError:
            return None
