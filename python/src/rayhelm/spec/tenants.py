"""Services and tenants: who owns what, and who may call it."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rayhelm.spec.base import ListOf, Record, Refusal
from rayhelm.spec.names import Name, SecretName
from rayhelm.spec.units import Bytes

__all__ = ["Aliases", "Service", "Tenant"]


class Aliases(Record):
    """ExternalName Services under the names that clients use already (KServe's `whisper-predictor`)."""

    namespace: Name
    """Namespace that the aliases live in; its pods may call the service."""
    names: ListOf[Name] = Field(min_length=1, examples=[["whisper-predictor"]])
    """One Service each, all pointing to the serve Service; an ExternalName maps no port, so clients name 8000."""

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if len(set(self.names)) < len(self.names):
            names = ", ".join(dict.fromkeys(self.names))
            raise Refusal("an alias stands twice", f"names: [{names}]")
        return self


class Service(Record):
    """A RayService and its owner."""

    tenant: Name | None = None
    """Owner: whose namespace and quota it lives in; namespace `models` without one."""
    aliases: Aliases | None = None
    upgrade: Literal["NewCluster", "None"] | None = None
    """Pin: what a change of the pods does. NewCluster starts a second cluster and holds twice the GPUs meanwhile, None
    changes nothing. Left out: NewCluster where the pools have the cards for it."""
    weights_size: Bytes | None = Field(default=None, examples=["200GiB"])
    """Pin: size of the volume of weights. A volume only grows, so pin it before you take models away; computed when
    left out."""
    auth_secret: SecretName | None = None
    """Secret with Ray's token (key `auth_token`); without it the token changes with every new cluster."""


class Tenant(Record):
    """A team: what it owns and what it may call."""

    gpus: Annotated[float, Field(ge=0, le=100_000)] | None = None
    """Cards that its own services may hold when nothing is being upgraded."""
    models: ListOf[Name] = ()
    """Models that it may call; not enforced yet, for that is the gateway's."""
    requests_per_minute: int | None = Field(default=None, ge=1, le=1_000_000_000, examples=[600])
    """Rate limit at the gateway; not enforced yet."""
    namespace: Name | None = None
    """Namespace; the tenant's name when left out."""
