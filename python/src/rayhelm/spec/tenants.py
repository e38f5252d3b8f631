"""Services and tenants: who owns what, and who may call it."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from rayhelm.errors import Fix
from rayhelm.spec.base import ListOf, Record, Refusal, short
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


def _account(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?", text):
        raise Refusal(f"`{short(text)}` is not a service account", Fix("", "pipelines/deployer", "namespace/name"))
    return text


Account = Annotated[str, AfterValidator(_account), Field(examples=["pipelines/deployer"])]
Subject = Annotated[str, Field(min_length=1, max_length=253, examples=["search-team"])]


class Subjects(Record):
    """People and programs, as the API server knows them."""

    groups: ListOf[Subject] = ()
    """Groups of the identity provider."""
    users: ListOf[Subject] = ()
    """Users."""
    service_accounts: ListOf[Account] = ()
    """Service accounts of other namespaces."""


class Access(Record):
    """Who may do what in the tenant's namespace; nobody but deployers sees its Secrets."""

    viewers: Subjects = Subjects()
    """May look: services, pods, logs, events."""
    editors: Subjects = Subjects()
    """May also make, change and delete RayServices."""
    deployers: Subjects = Subjects()
    """May install the releases of `ray-service`: pipelines, not people."""


class Keys(Record):
    """API keys of a tenant. The Secret is yours, and holds their hashes: keys themselves stand nowhere."""

    secret: SecretName | None = None
    """Secret in the gateway's namespace, one for each cluster that it calls; `gateway-keys-<tenant>` when left out. Its
    entry `keys` has a line for each key: `<SHA-256 of the key, hex> <name> [<not after, RFC 3339>]`."""


class Tenant(Record):
    """A team: what it owns and what it may call."""

    gpus: Annotated[float, Field(ge=0, le=100_000)] | None = None
    """Most cards that the plan may give to its own services when nothing is being upgraded. Its quota is what the plan
    gives, and what upgrades need beside that."""
    models: ListOf[Name] = ()
    """Models that it may call; the gateway answers 403 for others."""
    pinned_versions: dict[Name, Name] = Field(default={}, examples=[{"chat": "next"}])
    """Version that it gets of a model, whatever the weights say."""
    requests_per_minute: int = Field(default=600, ge=1, le=1_000_000_000, examples=[600])
    """Requests in any minute; the gateway answers 429 beyond them. In each cluster where it calls something."""
    concurrency: int = Field(default=64, ge=1, le=1_000_000, examples=[64])
    """Requests at the same time; likewise."""
    keys: Keys = Keys()
    """Where the hashes of its keys are."""
    access: Access = Access()
    """Who may do what in its namespace."""
    namespace: Name | None = None
    """Namespace of its services; the tenant's name when left out."""
