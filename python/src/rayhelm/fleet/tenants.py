"""Services and tenants: owners, allowed models, limits and access."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from rayhelm.errors import Fix
from rayhelm.fleet.base import ListOf, Record, Refusal, short
from rayhelm.fleet.names import ModelName, Name, SecretName
from rayhelm.fleet.overrides import ChartValues
from rayhelm.fleet.redis import Redis
from rayhelm.fleet.units import Bytes

__all__ = ["Aliases", "Service", "Tenant"]


class Aliases(Record):
    """ExternalName Services with names that clients already use (such as `whisper-predictor` of KServe)."""

    namespace: Name
    """Namespace of the aliases; its pods may call the service."""
    names: ListOf[Name] = Field(min_length=1, examples=[["whisper-predictor"]])
    """Names of the aliases. An ExternalName maps no port, so clients use port 8000."""

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        if len(set(self.names)) < len(self.names):
            raise Refusal("an alias is listed twice", Fix("names", list(dict.fromkeys(self.names))))
        return self


class Service(Record):
    """A RayService and its owner."""

    tenant: Name | None = None
    """Owner: the service is in its namespace and counts in its quota. Without owner: namespace `models`."""
    aliases: Aliases | None = None
    upgrade: Literal["NewCluster", "None"] | None = None
    """Pin: what a change of pods does. `NewCluster` starts a second Ray cluster and needs the GPUs twice meanwhile.
    `None` does not change running pods. Default: `NewCluster` if the pools have the GPUs."""
    data_path: Literal["Auto", "Python", "HAProxy", "Direct"] = "Python"
    """Way of a request inside the Ray cluster. `Direct`: to the engine without a Python process between, with all
    routes of vLLM. `Auto`: `Direct` where it was seen to work, else `HAProxy` or `Python`, with the reason. An edit
    starts a second Ray cluster."""
    weights_size: Bytes | None = Field(default=None, examples=["200GiB"])
    """Pin: size of the volume of the weights; default: computed. A volume cannot shrink, so pin it before you remove
    models."""
    auth_secret: SecretName | None = None
    """Secret with the token of Ray (key `auth_token`); without it each new Ray cluster has a new token."""
    values: ChartValues = Field(default={}, examples=[{"head": {"shmSize": "2Gi"}}])
    """Overrides: values of the chart `ray-service`, merged last, after those of the pools. What the plan decides is
    refused."""


def _account(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?", text):
        raise Refusal(f"`{short(text)}` is not a service account", Fix("", "pipelines/deployer", "namespace/name"))
    return text


Account = Annotated[str, AfterValidator(_account), Field(examples=["pipelines/deployer"])]
Subject = Annotated[str, Field(min_length=1, max_length=253, examples=["search-team"])]


class Subjects(Record):
    """Subjects of Kubernetes RBAC."""

    groups: ListOf[Subject] = ()
    """Groups of the identity provider."""
    users: ListOf[Subject] = ()
    """Users."""
    service_accounts: ListOf[Account] = ()
    """Service accounts of other namespaces."""


class Access(Record):
    """Access rights in the namespace of the tenant. Only deployers can read its Secrets."""

    viewers: Subjects = Subjects()
    """May read services, pods, logs and events."""
    editors: Subjects = Subjects()
    """May also create, change and delete RayServices."""
    deployers: Subjects = Subjects()
    """May install releases of the chart `ray-service`: for pipelines, not for people."""


class Keys(Record):
    """API keys of a tenant. You create the Secret, or `externalSecrets` of the chart `gateway` does. It has the hashes
    of the keys, not the keys."""

    secret: SecretName | None = None
    """Secret in the namespace of the gateway, in each cluster that the tenant calls; default: `gateway-keys-<tenant>`.
    Its entry `keys` has a line per key: `<SHA-256 of the key, hex> <name> [<not after, RFC 3339>]`."""


class Tenant(Record):
    """A team: its services, and the models that it may call."""

    gpus: Annotated[float, Field(ge=0, le=100_000)] | None = None
    """Limit of the GPUs that the plan gives to its services, without upgrades. Its quota is what the plan gives plus
    the upgrade surge."""
    models: ListOf[ModelName] = ()
    """Models that it may call; for others the gateway returns 404."""
    pinned_versions: dict[ModelName, Name] = Field(default={}, examples=[{"chat": "next"}])
    """Version of a model that its requests get, independent of the weights."""
    requests_per_minute: int = Field(default=600, ge=1, le=1_000_000_000, examples=[600])
    """Requests per minute, in each cluster; above it the gateway returns 429."""
    tokens_per_minute: int | None = Field(default=None, ge=1, le=1_000_000_000_000, examples=[100_000])
    """Tokens of prompts and outputs per minute, in each cluster; above it the gateway returns 429. Default: no
    limit."""
    concurrency: int = Field(default=64, ge=1, le=1_000_000, examples=[64])
    """Requests in flight, in each cluster; above it the gateway returns 429."""
    max_output_tokens: dict[ModelName, Annotated[int, Field(ge=1, le=999_999_999)]] = Field(
        default={}, examples=[{"chat": 4096}]
    )
    """Output tokens that a request may ask for, by model; above it, or without `max_tokens`, the gateway returns
    400."""
    max_body_bytes: dict[ModelName, Annotated[int, Field(ge=1, le=1_000_000_000)]] = Field(
        default={}, examples=[{"chat": 65536}]
    )
    """Bytes of a request, by model, which bound its prompt; above it the gateway returns 413."""
    redis: Redis | None = None
    """Redis for the fault tolerance of the heads of its services, instead of the one of the cluster. No other owner may
    use it: with its password, code can run in every Ray cluster that stores its state there."""
    keys: Keys = Keys()
    """Secret with the hashes of its API keys."""
    access: Access = Access()
    """Access rights in its namespace."""
    namespace: Name | None = None
    """Namespace of its services; default: the name of the tenant."""
    values: ChartValues = Field(default={}, examples=[{"kueue": {"localQueue": "batch", "clusterQueue": "gpus"}}])
    """Overrides: values of the chart `tenant`, merged last, such as a queue of Kueue, Secrets of the External Secrets
    Operator or other quotas. What the plan decides is refused."""
