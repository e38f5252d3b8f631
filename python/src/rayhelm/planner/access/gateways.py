"""Who may call what, through which door, and what about that a reader would not expect."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil

from rayhelm.planner.plan import GatewayPlan, ModelPlan, TenantPlan, VersionPlan
from rayhelm.spec.fleet import Fleet
from rayhelm.spec.models import STABLE
from rayhelm.spec.pools import Cluster
from rayhelm.spec.tenants import Access, Tenant

__all__ = ["plan_gateways", "plan_tenants", "warn_access"]


def plan_tenants(fleet: Fleet) -> dict[str, TenantPlan]:
    return {
        name: TenantPlan(
            models=tenant.models,
            pinned_versions=dict(tenant.pinned_versions),
            requests_per_minute=tenant.requests_per_minute,
            concurrency=tenant.concurrency,
            keys_secret=fleet.keys_of(name),
            services=fleet.services_of(name),
        )
        for name, tenant in fleet.tenants.items()
    }


def plan_gateways(models: Mapping[str, ModelPlan], fleet: Fleet) -> dict[str, GatewayPlan]:
    """A door for each cluster that has something which somebody may call."""
    plans = {}
    for name, cluster in fleet.clusters.items():
        behind = tuple(
            model
            for model in fleet.models
            if fleet.served_name(model) == model and models[model].cluster == name and fleet.tenants_allowed(model)
        )
        if not behind:
            continue
        plans[name] = GatewayPlan(
            namespace=cluster.gateway.namespace,
            url=_url(cluster),
            models=behind,
            versions={model: plan_versions(model, models, fleet) for model in behind},
            tenants=tuple(name for name, tenant in fleet.tenants.items() if set(tenant.models) & set(behind)),
        )
    return plans


def plan_versions(name: str, models: Mapping[str, ModelPlan], fleet: Fleet) -> dict[str, VersionPlan]:
    """Of what clients call `name`; what no other version takes is its own."""
    held: dict[str, list[str]] = {}
    weights: dict[str, int] = {}
    for model in fleet.served_as(name):
        version, other = fleet.version_of(model), fleet.models[model].served_as
        held.setdefault(version, []).append(model)
        weights[version] = max(weights.get(version, 0), (other.weight if other else None) or 0)
    weights[STABLE] = 100 - sum(weights.values())
    return {
        version: VersionPlan(weight=weights[version], models=_shares([models[model] for model in held[version]]))
        for version in held
    }


def _shares(plans: Sequence[ModelPlan]) -> dict[str, int]:
    """Unlike cards answer unlike amounts."""
    rates = {plan.model: plan.replicas * (plan.estimate.tokens_per_second or 0) for plan in plans}
    if not all(rates.values()):
        return dict.fromkeys(rates, 100)
    return {model: max(1, round(100 * rate / max(rates.values()))) for model, rate in rates.items()}


def warn_access(models: Mapping[str, ModelPlan], fleet: Fleet) -> Iterator[str]:
    """What a fleet with or without tenants leaves open, or shut."""
    if not fleet.tenants:
        yield (
            "there are no `tenants`, so no gateway is rendered: bring one of your own, for the endpoints themselves ask"
            " nobody for a key"
        )
        return
    for model in fleet.models:
        if fleet.served_name(model) == model and not fleet.tenants_allowed(model):
            yield f"nobody may call `{model}`: no tenant names it among its `models`, so the gateway does not know it"
    for name, tenant in fleet.tenants.items():
        meant = [key for key, value in _OF_OWNERS.items() if value(tenant)]
        if meant and not fleet.services_of(name):
            keys = " and ".join(f"`{key}`" for key in meant)
            yield f"tenant `{name}` owns no service, so it gets no namespace, and {keys} mean nothing"
    for service, declared in fleet.services.items():
        if declared.aliases:
            yield (
                f"pods of namespace `{declared.aliases.namespace}` call service `{service}` by its aliases, past the"
                " gateway: without a key, and without a limit"
            )
    yield from _limits_below_the_load(models, fleet)
    yield from _shorter_contexts(models, fleet)
    for name in plan_gateways(models, fleet):
        if not fleet.clusters[name].gateway.allowed_clients:
            yield (
                f"nobody can reach the gateway of cluster `{name}`: its NetworkPolicy lets in the namespaces that"
                " `gateway.allowedClients` names, and it names none"
            )


def _limits_below_the_load(models: Mapping[str, ModelPlan], fleet: Fleet) -> Iterator[str]:
    """Cards that are planned for requests which the gateway would refuse."""
    for model, spec in fleet.models.items():
        callers = [fleet.tenants[name] for name in fleet.tenants_allowed(model)]
        if not callers or not spec.traffic:
            continue
        load = spec.traffic.requests_per_second * 60
        if load > (most := sum(tenant.requests_per_minute for tenant in callers)):
            yield f"`{model}` is planned for {load:g} requests a minute, and the tenants that may call it have {most}"
        load = ceil((models[model].estimate.concurrency or 0) * models[model].replicas)
        if load > (most := sum(tenant.concurrency for tenant in callers)):
            yield f"`{model}` is planned for {load} requests at once, and the tenants that may call it have {most}"


def _shorter_contexts(models: Mapping[str, ModelPlan], fleet: Fleet) -> Iterator[str]:
    """A place that takes less than another refuses some of the requests that it gets in the other's stead."""
    for name in {fleet.served_name(model): None for model in fleet.models}:
        places = [model for model in fleet.served_as(name) if fleet.version_of(model) == STABLE]
        longest = max(places, key=lambda model: models[model].max_model_len)
        for model in places:
            if (short := models[model].max_model_len) < (most := models[longest].max_model_len):
                yield (
                    f"`{model}` takes {short} tokens and `{longest}` {most}, and both answer to `{name}`: what is"
                    f" longer is refused where it comes to the first. Write `context: {short}` at both, or a `version`"
                )


_OF_OWNERS: Mapping[str, Callable[[Tenant], bool]] = {
    "gpus": lambda tenant: tenant.gpus is not None,
    "access": lambda tenant: tenant.access != Access(),
    "namespace": lambda tenant: tenant.namespace is not None,
}
"""What a fleet file says of a tenant for the sake of its namespace."""


def _url(cluster: Cluster) -> str:
    if cluster.gateway.host:
        return f"https://{cluster.gateway.host}"
    return f"http://gateway.{cluster.gateway.namespace}"
