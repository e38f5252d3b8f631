"""Gateways of the plan, which tenant may call which model, and warnings about access."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import ceil

from rayhelm.facts.tasks import get_task
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.models import STABLE
from rayhelm.fleet.pools import Cluster
from rayhelm.fleet.tenants import Access, Tenant
from rayhelm.planner.access.remotes import find_forwarded, join_gateways, warn_remotes
from rayhelm.planner.plan import GatewayPlan, ModelPlan, TenantPlan, VersionPlan

__all__ = ["plan_gateways", "plan_tenants", "warn_access"]


def plan_tenants(fleet: Fleet) -> dict[str, TenantPlan]:
    return {
        name: TenantPlan(
            models=tenant.models,
            pinned_versions=dict(tenant.pinned_versions),
            requests_per_minute=tenant.requests_per_minute,
            tokens_per_minute=tenant.tokens_per_minute,
            concurrency=tenant.concurrency,
            keys_secret=fleet.keys_of(name),
            services=fleet.services_of(name),
        )
        for name, tenant in fleet.tenants.items()
    }


def plan_gateways(models: Mapping[str, ModelPlan], fleet: Fleet) -> dict[str, GatewayPlan]:
    """Plan a gateway for each cluster with a model that a tenant may call."""
    served = {name: found for name in fleet.clusters if (found := _list_served(name, models, fleet))}
    plans: dict[str, GatewayPlan] = {}
    for name, here in served.items():
        cluster, forwarded = fleet.clusters[name], find_forwarded(name, served, fleet)
        behind = (*here, *forwarded)
        plans[name] = GatewayPlan(
            namespace=cluster.gateway.namespace,
            url=_build_url(cluster),
            models=behind,
            forwarded=tuple(forwarded),
            versions={
                model: plan_versions(model, models, fleet, name)
                if model in fleet.models
                else _plan_adapter(model, fleet)
                for model in here
            }
            | {model: _plan_elsewhere(model, clusters, models, fleet) for model, clusters in forwarded.items()},
            tenants=tuple(name for name, tenant in fleet.tenants.items() if set(tenant.models) & set(behind)),
            prefix_caches=_find_prefix_caches(here, fleet),
        )
    return join_gateways(plans, models, fleet)


def _list_served(cluster: str, models: Mapping[str, ModelPlan], fleet: Fleet) -> tuple[str, ...]:
    """Return the names that a tenant may call and the cluster itself serves."""
    return tuple(
        model
        for model in fleet.models
        if fleet.served_name(model) == model
        and fleet.tenants_allowed(model)
        and any(models[each].cluster == cluster for each in fleet.served_as(model))
    ) + tuple(
        adapter
        for adapter in fleet.adapters
        if models[fleet.served_by(adapter)].cluster == cluster and fleet.tenants_named(adapter)
    )


def _plan_elsewhere(
    name: str, clusters: Iterable[str], models: Mapping[str, ModelPlan], fleet: Fleet
) -> dict[str, VersionPlan]:
    """Return the versions that other clusters have of a name, with their weights and no models."""
    if name not in fleet.models:
        return {STABLE: VersionPlan(weight=100, models={})}
    weights: dict[str, int] = {}
    for cluster in clusters:
        found = plan_versions(name, models, fleet, cluster)
        weights |= {version: each.weight for version, each in found.items()}
    weights[STABLE] = 100 - sum(weight for version, weight in weights.items() if version != STABLE)
    return {version: VersionPlan(weight=weight, models={}) for version, weight in weights.items()}


def _find_prefix_caches(names: Iterable[str], fleet: Fleet) -> dict[str, str]:
    """Return the names that several tenants may call, with the reason why they share the prefix cache."""
    specs = {name: fleet.models[fleet.served_by(name)] for name in names if len(fleet.tenants_named(name)) > 1}
    return {
        name: spec.shared_prefix_cache_reason or ""
        for name, spec in specs.items()
        if get_task(spec.task).has_cache_salt
    }


def _plan_adapter(name: str, fleet: Fleet) -> dict[str, VersionPlan]:
    """Return the only version of an adapter: the replicas of its model."""
    return {STABLE: VersionPlan(weight=100, models={fleet.served_by(name): 100})}


def plan_versions(name: str, models: Mapping[str, ModelPlan], fleet: Fleet, cluster: str) -> dict[str, VersionPlan]:
    """Return the versions that a cluster has of the model that clients call `name`, with their weights in percent;
    `stable` gets what is left."""
    by_version: dict[str, list[str]] = {}
    weights: dict[str, int] = {}
    for model in fleet.served_as(name):
        version, other = fleet.version_of(model), fleet.models[model].served_as
        if models[model].cluster == cluster:
            by_version.setdefault(version, []).append(model)
        # One model of a version has its weight, and can be in another cluster.
        weights[version] = max(weights.get(version, 0), (other.weight if other else None) or 0)
    weights[STABLE] = 100 - sum(weights[version] for version in by_version if version != STABLE)
    return {
        version: VersionPlan(
            weight=weights[version], models=_compute_shares([models[model] for model in by_version[version]])
        )
        for version in by_version
    }


def _compute_shares(plans: Sequence[ModelPlan]) -> dict[str, int]:
    """Return the weight of each model by its estimated tokens per second, 100 for the fastest. If one is
    unknown, by the part of the load: that of `pools`, and the same for models without them."""
    rates = {plan.model: plan.serving_replicas * (plan.estimate.tokens_per_second or 0) for plan in plans}
    if not all(rates.values()):
        rates = {plan.model: plan.load_share for plan in plans}
    return {model: max(1, round(100 * rate / max(rates.values()))) for model, rate in rates.items()}


def warn_access(models: Mapping[str, ModelPlan], gateways: Mapping[str, GatewayPlan], fleet: Fleet) -> Iterator[str]:
    """Yield warnings about models that cannot be called, or can be called without the gateway."""
    if not fleet.tenants:
        yield (
            "the fleet has no `tenants`, so no gateway is rendered. Use a gateway of your own: the endpoints"
            " themselves do not check API keys"
        )
        return
    for model in fleet.models:
        if fleet.served_name(model) == model and not fleet.tenants_allowed(model):
            yield f"no tenant lists `{model}` in its `models`, so the gateway does not serve it"
    for adapter in fleet.adapters:
        if not fleet.tenants_named(adapter):
            yield f"no tenant lists adapter `{adapter}` in its `models`, so the gateway does not serve it"
    for name, tenant in fleet.tenants.items():
        meant = [key for key, value in _OF_OWNERS.items() if value(tenant)]
        if meant and not fleet.services_of(name):
            keys = " and ".join(f"`{key}`" for key in meant)
            yield f"tenant `{name}` owns no service, so it gets no namespace and {keys} have no effect"
    for service, declared in fleet.services.items():
        if declared.aliases:
            yield (
                f"pods of namespace `{declared.aliases.namespace}` can call service `{service}` by its aliases,"
                " without the gateway: no API key is checked and no limit applies"
            )
    yield from _find_reasons_without_effect(fleet)
    yield from _find_limits_below_load(models, fleet)
    yield from _find_shorter_contexts(models, fleet)
    yield from warn_remotes(gateways, fleet)
    for name in gateways:
        gateway = fleet.clusters[name].gateway
        if not gateway.allowed_clients and not (gateway.tls and gateway.tls.cidrs):
            yield (
                f"no client can reach the gateway of cluster `{name}`: `gateway.allowedClients` names no namespace,"
                " and the NetworkPolicy allows only those"
            )


def _find_reasons_without_effect(fleet: Fleet) -> Iterator[str]:
    """Yield models with a reason to share the prefix cache that no gateway uses."""
    for model, spec in fleet.models.items():
        if not spec.shared_prefix_cache_reason:
            continue
        names = (model, *spec.adapters)
        if (base := fleet.served_name(model)) != model:
            why = f"clients call the model as `{base}`, and the setting of that model holds"
        elif not get_task(spec.task).has_cache_salt:
            why = f"the gateway divides no prefix cache of task `{spec.task}` by tenant"
        elif all(len(fleet.tenants_named(name)) <= 1 for name in names):
            why = "at most one tenant may call the model"
        else:
            continue
        yield f"`sharedPrefixCacheReason` of `{model}` has no effect: {why}"


def _find_limits_below_load(models: Mapping[str, ModelPlan], fleet: Fleet) -> Iterator[str]:
    """Yield models planned for more requests than the limits of their tenants let through."""
    for model, spec in fleet.models.items():
        tenants = [fleet.tenants[name] for name in fleet.tenants_allowed(model)]
        if not tenants or not spec.traffic or models[model].written != model:
            continue
        load = spec.traffic.peak_rate * 60
        if load > (most := sum(tenant.requests_per_minute for tenant in tenants)):
            yield (
                f"`{model}` is planned for {load:g} requests per minute, and the limits of its tenants"
                f" (`requestsPerMinute`) add up to {most}"
            )
        parts = [part for part in models.values() if part.written == model]
        load = ceil(sum((part.estimate.concurrency or 0) * part.serving_replicas for part in parts))
        if load > (most := sum(tenant.concurrency for tenant in tenants)):
            yield (
                f"`{model}` is planned for {load} requests at a time, and the limits of its tenants (`concurrency`)"
                f" add up to {most}"
            )


def _find_shorter_contexts(models: Mapping[str, ModelPlan], fleet: Fleet) -> Iterator[str]:
    """Yield models with one served name and different contexts: one refuses requests that the other takes."""
    for name in {fleet.served_name(model): None for model in fleet.models}:
        places = [model for model in fleet.served_as(name) if fleet.version_of(model) == STABLE]
        longest = max(places, key=lambda model: models[model].max_model_len)
        for model in places:
            if (short := models[model].max_model_len) < (most := models[longest].max_model_len):
                yield (
                    f"`{model}` has a context of {short} tokens and `{longest}` of {most}, and both are served as"
                    f" `{name}`: `{model}` refuses longer requests. Set `context: {short}` for both, or give one a"
                    " `version`"
                )


_OF_OWNERS: Mapping[str, Callable[[Tenant], bool]] = {
    "gpus": lambda tenant: tenant.gpus is not None,
    "access": lambda tenant: tenant.access != Access(),
    "namespace": lambda tenant: tenant.namespace is not None,
}
"""Keys of a tenant that only act on its namespace."""


def _build_url(cluster: Cluster) -> str:
    if cluster.gateway.host:
        return f"https://{cluster.gateway.host}"
    return f"http://gateway.{cluster.gateway.namespace}"
