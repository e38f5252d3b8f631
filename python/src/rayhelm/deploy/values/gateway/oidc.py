"""JSON Web Tokens of an identity provider, beside API keys."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Values
from rayhelm.deploy.values.gateway.tenants import SecretKey, SecretName

__all__ = ["Jwks", "Oidc"]

Claim = Annotated[str, Field(pattern=r"^[!-~]+$", max_length=253)]


class Jwks(Values):
    """JSON Web Key Set of the provider: a ConfigMap or a Secret in the gateway's namespace. The gateway reads it again
    while it runs, as it reads API keys, and does not fetch it from the provider."""

    config_map_name: SecretName | Literal[""] = ""
    """Name of the ConfigMap."""
    secret_name: SecretName | Literal[""] = ""
    """Instead of `configMapName`: name of the Secret."""
    key: SecretKey = "jwks.json"
    """Key in its data."""


class Oidc(Values):
    """JSON Web Tokens. A bearer token that is an API key is never read as a token."""

    enabled: bool = False
    """Accept tokens beside API keys."""
    issuer: Annotated[str, Field(pattern=r"^(https?://[!-~]+)?$", max_length=1024)] = ""
    """Claim `iss` of every token, as the provider writes it, with or without a slash at its end; required."""
    audiences: list[Annotated[str, Field(pattern=r"^[!-~]+$", max_length=1024)]] = []
    """Claim `aud`: a token needs one of these; required. Use a name that the provider gives to this gateway alone, or
    it accepts tokens for other applications."""
    tenant_claim: Claim = "tenant"
    """Claim whose value selects the tenant (`tenants.*.claimValues`): a text, or a list of texts such as `groups`. It
    is at the top level of the token; dots in its name mean nothing."""
    name_claim: Claim | Literal[""] = ""
    """Claim that names the client in the access log, such as `azp` or `sub`. Empty: the log has `@token`."""
    algorithms: Annotated[list[Literal["RS256", "ES256"]], Field(min_length=1)] = ["RS256", "ES256"]
    """Accepted algorithms. A key of the JWKS fixes its algorithm; a token cannot select another one."""
    clock_skew_seconds: Annotated[int, Field(ge=0, le=300)] = 30
    """Difference between the clocks of the provider and of the pods that `exp` and `nbf` may have."""
    jwks: Jwks = Jwks()
    """JSON Web Key Set of the provider."""
