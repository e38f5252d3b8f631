"""Who may call: keys, models and limits of each tenant."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.values.gateway.models import ModelId
from rayhelm.values.ray_service.base import Name, Values

__all__ = ["Tenant"]

SecretName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
SecretKey = Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)]


class Keys(Values):
    """A Secret with the hashes of a tenant's keys; keys themselves are nowhere."""

    secret_name: SecretName | Literal[""] = ""
    """Name of the Secret, in the gateway's namespace; required. One that is not there yet does not stop the pods: the
    tenant gets 401 until it is."""
    secret_key: SecretKey = "keys"
    """Entry of the Secret. A line for each key: `<SHA-256 of the key, hex> <name> [<not after, RFC 3339>]`."""


class Tenant(Values):
    """A team that calls models."""

    keys: Keys = Keys()
    """Where the hashes of its keys are."""
    models: list[ModelId] = []
    """Models that it may call, by their names in `models`."""
    requests_per_minute: Annotated[int, Field(ge=0, le=1_000_000_000)] = 600
    """Requests in any minute, over all pods; more get 429 with Retry-After."""
    concurrency: Annotated[int, Field(ge=0, le=1_000_000)] = 64
    """Requests at the same time, over all pods; more get 429 with Retry-After."""
    pinned_versions: dict[ModelId, Name] = {}
    """Version that it gets of a model, whatever the weights say."""
