"""HAProxy's image and ports."""

from typing import Annotated

from pydantic import Field

from rayhelm.deploy.values.common.base import Values
from rayhelm.deploy.values.common.image import Digest, PullPolicy, Repository, Tag
from rayhelm.facts.versions import versions

__all__ = ["HaproxyImage", "Listen"]

Unprivileged = Annotated[int, Field(ge=1024, le=65535)]


class HaproxyImage(Values):
    """HAProxy 3.4.5 or newer with Lua 5.4; it does not run as root. 2.8 and 3.2 work too, with slower retries."""

    repository: Repository = versions().images["haproxy"].repository
    """Repository, with the host of the registry if it is not the default one."""
    tag: Tag = versions().images["haproxy"].tag
    """Tag; `latest` is refused. The default was not read from a registry: check it and set the digest."""
    digest: Digest = versions().images["haproxy"].digest
    """Digest `sha256:...`; it overrides the tag. Empty: the tag is used."""
    pull_policy: PullPolicy = "IfNotPresent"
    """Image pull policy."""


class Listen(Values):
    """Address and ports of HAProxy in the pod."""

    address: Annotated[str, Field(pattern=r"^(\*|[0-9A-Fa-f.:]+)$")] = "*"
    """Address; `*`: all IPv4 addresses, `::`: all IPv6 addresses."""
    port: Unprivileged = 8080
    """Port for clients."""
    metrics_port: Unprivileged = 8404
    """Port for `/metrics`, `/livez` and `/readyz`."""
