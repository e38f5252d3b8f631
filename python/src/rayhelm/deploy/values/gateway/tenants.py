"""Tenants: their API keys, allowed models and limits."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Name, Values
from rayhelm.deploy.values.gateway.models import ModelId

__all__ = ["ClaimValue", "GatewayTenant", "SecretKey", "SecretName"]

SecretName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
ClaimValue = Annotated[str, Field(pattern=r"^[!-~]([ -~]*[!-~])?$", max_length=253)]
SecretKey = Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)]


class KeysSecret(Values):
    """Secret with the hashes of a tenant's API keys. The keys themselves are not stored."""

    secret_name: SecretName | Literal[""] = ""
    """Name of the Secret in the gateway's namespace; required without `claimValues`. Pods start without it; its
    keys get 401 until it exists."""
    secret_key: SecretKey = "keys"
    """Key in the Secret's data. Its value has one line per API key: `<SHA-256 of the API key, hex> <name> [<expiry,
    RFC 3339>]`."""


class GatewayTenant(Values):
    """A team that uses models."""

    keys: KeysSecret = KeysSecret()
    """Secret with the hashes of its API keys."""
    claim_values: list[ClaimValue] = []
    """Values of the claim `oidc.tenantClaim` whose tokens belong to this tenant. A tenant with values may have no
    `keys`. A token that has values of two tenants is refused."""
    models: list[ModelId] = []
    """Models that it may use, by their names in `models`."""
    requests_per_minute: Annotated[int, Field(ge=0, le=1_000_000_000)] = 600
    """Requests within any minute over all pods. Further requests get 429 with Retry-After."""
    tokens_per_minute: Annotated[int, Field(ge=0, le=1_000_000_000_000)] | None = None
    """Tokens per minute over all pods: prompts and outputs of the tasks `chat`, `embed` and `rerank`, counted when a
    response ends. After more, requests get 429 with Retry-After until that is repaid. Default: no limit."""
    concurrency: Annotated[int, Field(ge=0, le=1_000_000)] = 64
    """Requests in flight over all pods. Further requests get 429 with Retry-After."""
    pinned_versions: dict[ModelId, Name] = {}
    """Version of a model that this tenant gets, by model. It overrides the weights."""
    max_output_tokens: dict[ModelId, Annotated[int, Field(ge=0, le=999_999_999)]] = {}
    """Largest number of output tokens of a request, by model: `max_tokens` or `max_completion_tokens`, times `n`, times
    the number of prompts. A request for more gets 400."""
    without_max_tokens: Literal["Refuse", "Forward"] = "Refuse"
    """Requests without `max_tokens` to a model with a bound in `maxOutputTokens`. `Refuse`: 400. `Forward`: the model
    server decides. vLLM then generates up to the rest of the context, and 16 tokens for `/v1/completions`."""
    max_body_bytes: dict[ModelId, Annotated[int, Field(ge=0, le=1_000_000_000)]] = {}
    """Largest JSON body of a request, by model, below `limits.bodyBytes`. It bounds the prompt, which is a part of the
    body, but not media that the body names by URL. A larger body gets 413."""
