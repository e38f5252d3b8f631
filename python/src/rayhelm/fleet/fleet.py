"""The fleet file: GPUs, models, tenants and objectives. Maps are keyed by name, and quantities have units."""

from collections.abc import Callable, Iterable
from functools import cached_property

from pydantic import Field

from rayhelm.facts import Catalog
from rayhelm.fleet.base import Record
from rayhelm.fleet.gitops import Gitops
from rayhelm.fleet.models import STABLE, ModelSpec
from rayhelm.fleet.names import ModelName, Name, derive_kubernetes_name
from rayhelm.fleet.own_gpus import GpuName, OwnGpu, extend_catalog
from rayhelm.fleet.pools import Cluster, Network, Pool
from rayhelm.fleet.prices import Prices, build_prices
from rayhelm.fleet.tenants import Service, Tenant

__all__ = ["UNOWNED", "Fleet"]

UNOWNED = "models"
"""Namespace of services that no tenant owns."""


class Review(Record):
    """What `rayhelm render` writes for reviewers, besides the plan."""

    alternatives: bool = False
    """Write cheaper and safer shapes of each model into plan.md, with a chart in `shapes.svg`."""


class Fleet(Record):
    """A fleet."""

    fleet: Name
    """Name of the fleet."""
    clusters: dict[Name, Cluster] = Field(
        default={"main": Cluster()}, min_length=1, examples=[{"main": {"apiServer": {"cidrs": ["10.0.0.1/32"]}}}]
    )
    """Kubernetes clusters; default: one with the name `main`."""
    networks: dict[Name, Network] = {}
    """Networks that the catalog does not have, or that you measured."""
    gpus: dict[GpuName, OwnGpu] = Field(
        default={}, examples=[{"RTX-3090-48GB": {"like": "RTX-3090-24GB", "memory": "48GB"}}]
    )
    """GPUs that the catalog does not have, by the name that pools give them."""
    prices: Prices | None = None
    """Prices of GPUs for all pools. Default: those of the catalog."""
    measurements: str | None = Field(default=None, min_length=1, max_length=1024, examples=["measurements.yaml"])
    """File that `rayhelm probe` and `rayhelm bench` wrote, below the folder of this one. The plan uses measured
    networks in place of `network` of their pools, and the measured speed of models."""
    pools: dict[Name, Pool] = Field(min_length=1, examples=[{"gpu": {"gpu": "L4-24GB", "nodes": 1}}])
    """Pools of hosts with GPUs."""
    models: dict[ModelName, ModelSpec] = Field(
        min_length=1, examples=[{"chat": {"source": "Qwen/Qwen2.5-7B-Instruct", "context": 8192}}]
    )
    """Models, by the name that clients send, such as `Qwen/Qwen3-32B-AWQ`. Kubernetes names are derived from it."""
    services: dict[Name, Service] = {}
    """Services with an owner, aliases or other settings; a service without settings needs no entry."""
    tenants: dict[Name, Tenant] = {}
    """Teams that own services or call models. Without tenants no gateway is rendered."""
    gitops: Gitops | None = None
    """Delivery by Argo CD: `rayhelm render` writes its Applications. Default: none are written."""
    review: Review = Review()

    @cached_property
    def facts(self) -> Catalog:
        """The catalog with the GPUs of the fleet."""
        return self.extend_catalog()

    def extend_catalog(self, facts: Catalog | None = None) -> Catalog:
        """Return the catalog with the GPUs and the prices of the fleet."""
        found = extend_catalog(self.gpus, facts)
        return found.set_prices(build_prices(self.prices, found)) if self.prices else found

    def service_of(self, model: str) -> str:
        """Name of the service that serves `model`."""
        return self.models[model].service or derive_kubernetes_name(model)

    def application_of(self, model: str) -> str:
        """Name of the Serve application of `model`: derived from the served name."""
        return derive_kubernetes_name(self.served_name(model))

    def models_of(self, service: str) -> tuple[str, ...]:
        return self._by_service.get(service, ())

    def served_name(self, model: str) -> str:
        """Name that clients send for `model`: its own, or the one of `servedAs`."""
        other = self.models[model].served_as
        return other.model if other else model

    def version_of(self, model: str) -> str:
        """Version of the served name that `model` is."""
        other = self.models[model].served_as
        return (other.version if other else None) or STABLE

    def served_as(self, name: str) -> tuple[str, ...]:
        """Models that serve a name: the one with that name, then those that are served as it."""
        return (name, *(model for model in self._by_served_name.get(name, ()) if model != name))

    def aliases_of(self, model: str) -> tuple[str, ...]:
        """Further names of the served name of a model."""
        base = self.models.get(self.served_name(model))
        return base.aliases if base else ()

    def served_by(self, name: str) -> str:
        """Model that serves a name of clients: itself, or the base model of an adapter."""
        return self._adapters.get(name, name)

    @cached_property
    def _adapters(self) -> dict[str, str]:
        return {adapter: model for model, spec in self.models.items() for adapter in spec.adapters}

    @property
    def adapters(self) -> tuple[str, ...]:
        """Names of all adapters."""
        return tuple(self._adapters)

    @property
    def aliases(self) -> tuple[str, ...]:
        """Further names of all models."""
        return tuple(alias for spec in self.models.values() for alias in spec.aliases)

    def find_alias_owner(self, alias: str) -> str | None:
        """Model that has a further name; None if no model has it, or if it is the name of a model or adapter itself."""
        if alias in self.models or alias in self._adapters:
            return None
        return next((model for model, spec in self.models.items() if alias in spec.aliases), None)

    def pinned_cluster(self, model: str) -> str | None:
        """Cluster of the pools that a model of the service of `model` pins, if any."""
        clusters = map(self.pinned_cluster_of, self.models_of(self.service_of(model)))
        return next((cluster for cluster in clusters if cluster), None)

    def pinned_cluster_of(self, model: str) -> str | None:
        """Cluster of `pool` or `pools` of the model itself. All `pools` are in one, which is checked."""
        spec = self.models[model]
        return next((self.pools[pool].cluster for pool in (spec.pool, *spec.pools) if pool in self.pools), None)

    def _served_beside(self, model: str) -> tuple[str, ...]:
        """Models that serve the same name and must be on the same cluster: all, unless the model with that name and
        others pin different clusters. Those without a pin then stay with the model that has the name."""
        name = self.served_name(model)
        home = self.pinned_cluster(name)
        here = self.pinned_cluster(model) or home
        others = self.served_as(name)
        return tuple(each for each in others if not home or (self.pinned_cluster(each) or home) == here)

    def on_one_cluster_with(self, model: str) -> frozenset[str]:
        """Models that must be on the cluster of `model`, itself included: those of its service, and those that serve
        the same name there."""
        found, new = {model}, [model]
        while new:
            one = new.pop()
            near = {*self.models_of(self.service_of(one)), *self._served_beside(one)} - found
            found |= near
            new += near
        return frozenset(found)

    @property
    def service_names(self) -> tuple[str, ...]:
        """Services in the order of their first models, which are sorted by name."""
        return tuple(self._by_service)

    @cached_property
    def _by_service(self) -> dict[str, tuple[str, ...]]:
        return _group(self.models, self.service_of)

    @cached_property
    def _by_served_name(self) -> dict[str, tuple[str, ...]]:
        return _group(self.models, self.served_name)

    def owner_of(self, service: str) -> str | None:
        """Tenant that owns a service."""
        return self.services[service].tenant if service in self.services else None

    def services_of(self, tenant: str) -> tuple[str, ...]:
        """Services that a tenant owns."""
        return tuple(service for service in self.service_names if self.owner_of(service) == tenant)

    def namespace_of(self, service: str) -> str:
        """Namespace of a service: the one of its owner, or `models`."""
        owner = self.owner_of(service)
        if not owner:
            return UNOWNED
        tenant = self.tenants.get(owner)
        return (tenant.namespace if tenant else None) or owner

    def keys_of(self, tenant: str) -> str:
        """Secret with the hashes of the keys of a tenant."""
        return self.tenants[tenant].keys.secret or f"gateway-keys-{tenant}"

    def tenants_allowed(self, model: str) -> tuple[str, ...]:
        """Tenants that may call a model by its served name."""
        return self.tenants_named(self.served_name(model))

    def tenants_named(self, name: str) -> tuple[str, ...]:
        """Tenants that may call a name: a served name or an adapter."""
        return tuple(tenant for tenant, each in self.tenants.items() if name in each.models)


def _group(models: Iterable[str], key: Callable[[str], str]) -> dict[str, tuple[str, ...]]:
    """Return the models by key, in their order."""
    groups: dict[str, list[str]] = {}
    for model in models:
        groups.setdefault(key(model), []).append(model)
    return {name: tuple(members) for name, members in groups.items()}
