"""The process and its image."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.values.ray_service.base import Name, Values
from rayhelm.versions import versions

__all__ = ["Image", "Listen"]

Unprivileged = Annotated[int, Field(ge=1024, le=65535)]


class Image(Values):
    """HAProxy 2.8 or newer with Lua 5.4, run by a user that is not root."""

    repository: str = versions().images["haproxy"].repository
    """Repository, with the registry's host where it is not the default one."""
    tag: str = versions().images["haproxy"].tag
    """Tag; `latest` is refused. It was not read from a registry: look it up, and pin the digest."""
    digest: Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64})?$")] = versions().images["haproxy"].digest
    """Digest `sha256:...` wins over the tag: what was tested is what runs. Empty until somebody reads it."""
    pull_policy: Literal["IfNotPresent", "Always", "Never"] = "IfNotPresent"
    """When the kubelet pulls."""
    pull_secrets: list[Name] = []
    """Names of the Secrets with registry credentials."""


class Listen(Values):
    """Addresses and ports inside the pod."""

    address: Annotated[str, Field(pattern=r"^(\*|[0-9A-Fa-f.:]+)$")] = "*"
    """Address; `*` is every IPv4 address, `::` every one of IPv6."""
    port: Unprivileged = 8080
    """Port for clients."""
    metrics_port: Unprivileged = 8404
    """Port for `/metrics`, `/livez` and `/readyz`; clients have no business there."""
