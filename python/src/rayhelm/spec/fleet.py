"""The fleet file: which GPUs a team has and which models it serves, for whom and how fast.

Maps are keyed by name, so that overlays merge. Nouns, not flags. Units are written in the text.
"""

from pydantic import Field

from rayhelm.spec.base import Record
from rayhelm.spec.models import STABLE, ModelSpec
from rayhelm.spec.names import Name
from rayhelm.spec.pools import Cluster, Network, Pool
from rayhelm.spec.tenants import Service, Tenant

__all__ = ["UNOWNED", "Fleet"]

UNOWNED = "models"
"""Namespace of services that no tenant owns."""


class Fleet(Record):
    """A fleet."""

    fleet: Name
    """Name of the fleet."""
    clusters: dict[Name, Cluster] = Field(
        default={"main": Cluster()}, min_length=1, examples=[{"main": {"apiServer": {"cidrs": ["10.0.0.1/32"]}}}]
    )
    """Kubernetes clusters; one called `main` when left out."""
    networks: dict[Name, Network] = {}
    """Networks of your own, or measured ones, that pools name."""
    pools: dict[Name, Pool] = Field(min_length=1, examples=[{"gpu": {"gpu": "L4-24GB", "nodes": 1}}])
    """GPUs, by pool."""
    models: dict[Name, ModelSpec] = Field(
        min_length=1, examples=[{"chat": {"source": "Qwen/Qwen2.5-7B-Instruct", "context": 8192}}]
    )
    """Models, by the name that clients send."""
    services: dict[Name, Service] = {}
    """Services that need more said than their name: owner, aliases, upgrades."""
    tenants: dict[Name, Tenant] = {}
    """Teams: who owns services, and who may call models. Without them there is no gateway."""

    def service_of(self, model: str) -> str:
        """Name of the service that serves `model`."""
        return self.models[model].service or model

    def models_of(self, service: str) -> tuple[str, ...]:
        return tuple(name for name in self.models if self.service_of(name) == service)

    def served_name(self, model: str) -> str:
        """Name that clients send for `model`: its own, or that of the one that it answers for."""
        other = self.models[model].served_as
        return other.model if other else model

    def version_of(self, model: str) -> str:
        """Version of what clients name that `model` is."""
        other = self.models[model].served_as
        return (other.version if other else None) or STABLE

    def served_as(self, name: str) -> tuple[str, ...]:
        """Models that answer to a name: the one that is called so, then its other places and versions."""
        return (name, *(model for model in self.models if model != name and self.served_name(model) == name))

    def on_one_cluster_with(self, model: str) -> frozenset[str]:
        """Models that share a cluster with `model`, itself included: a RayService stands on one, and so does all that a
        gateway joins under one name."""
        found, new = {model}, [model]
        while new:
            one = new.pop()
            near = {*self.models_of(self.service_of(one)), *self.served_as(self.served_name(one))} - found
            found |= near
            new += near
        return frozenset(found)

    @property
    def service_names(self) -> tuple[str, ...]:
        """Services in the order in which their first models stand in the file."""
        return tuple(dict.fromkeys(self.service_of(name) for name in self.models))

    def owner_of(self, service: str) -> str | None:
        """Tenant that owns a service."""
        return self.services[service].tenant if service in self.services else None

    def services_of(self, tenant: str) -> tuple[str, ...]:
        """Services that a tenant owns."""
        return tuple(service for service in self.service_names if self.owner_of(service) == tenant)

    def namespace_of(self, service: str) -> str:
        """Where a service lives: with its owner, or in `models`."""
        owner = self.owner_of(service)
        if not owner:
            return UNOWNED
        tenant = self.tenants.get(owner)
        return (tenant.namespace if tenant else None) or owner

    def keys_of(self, tenant: str) -> str:
        """Secret with the hashes of a tenant's keys."""
        return self.tenants[tenant].keys.secret or f"gateway-keys-{tenant}"

    def tenants_allowed(self, model: str) -> tuple[str, ...]:
        """Tenants that may call a model, by the name that it answers to."""
        return tuple(name for name, tenant in self.tenants.items() if self.served_name(model) in tenant.models)
