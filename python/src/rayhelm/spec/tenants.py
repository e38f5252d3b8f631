"""Services and tenants: who owns what, and who may call it."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.closed import ClosedCamel
from rayhelm.spec.names import Name

__all__ = ["Aliases", "Service", "Tenant"]


class Aliases(ClosedCamel):
    """ExternalName Services under the names that clients use already (KServe's `whisper-predictor`)."""

    namespace: Name
    """Namespace that the aliases live in."""
    names: tuple[Name, ...]
    """One Service each, all pointing to the serve Service; an ExternalName maps no port, so clients name 8000."""


class Service(ClosedCamel):
    """A RayService and its owner."""

    tenant: Name | None = None
    """Owner: whose namespace and quota it lives in; namespace `models` without one."""
    aliases: Aliases | None = None
    upgrade: Literal["NewCluster", "NewClusterWithIncrementalUpgrade", "None"] = "NewCluster"
    """How KubeRay replaces a changed cluster: NewCluster holds twice the GPUs meanwhile, None changes nothing."""
    auth_secret: str | None = None
    """Secret with Ray's token (key `auth_token`); without it the token changes with every new cluster."""


class Tenant(ClosedCamel):
    """A team: what it owns and what it may call."""

    gpus: Annotated[float, Field(ge=0, le=100_000)] | None = None
    """Cards that its own services may hold when nothing is being upgraded."""
    models: tuple[Name, ...] = ()
    """Models that it may call."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """Rate limit at the gateway."""
    namespace: Name | None = None
    """Namespace; the tenant's name when left out."""
