"""Services out of their models: what they hold, and what an upgrade can do with the cards that are left."""

from collections.abc import Iterable, Iterator, Mapping

from rayhelm.planner.placement.inventory import PoolSite
from rayhelm.planner.placement.model_spec import Wish
from rayhelm.planner.plan import ModelPlan, ServicePlan
from rayhelm.spec.load import LoadedFleet
from rayhelm.spec.tenants import Service

__all__ = ["cards_of", "gated_without_token", "images_to_bring", "service_plans"]


def service_plans(
    models: Mapping[str, ModelPlan], sites: Mapping[str, PoolSite], loaded: LoadedFleet
) -> dict[str, ServicePlan]:
    return {name: _service(name, models, sites, loaded) for name in loaded.fleet.service_names}


def images_to_bring(models: Mapping[str, ModelPlan], loaded: LoadedFleet) -> Iterator[str]:
    """Applications beside vLLM have to be in every image of their cluster: any node may import them."""
    for plan in models.values():
        if plan.task in ("speak", "custom") and not loaded.fleet.clusters[plan.cluster].image:
            yield (
                f"the stock image does not hold the application that serves `{plan.model}`: give cluster"
                f" `{plan.cluster}` an `image` that does"
            )


def gated_without_token(wishes: Iterable[Wish], models: Mapping[str, ModelPlan], loaded: LoadedFleet) -> Iterator[str]:
    """Models that the download Job would be refused."""
    for wish in wishes:
        plan = models[wish.name]
        if wish.model.needs_token and not loaded.fleet.clusters[plan.cluster].weights.hub_token:
            yield (
                f"{plan.source} is gated, and cluster `{plan.cluster}` has no `weights.hubToken`: the download would be"
                " refused, and the workers would wait for it"
            )


def cards_of(service: str, site: PoolSite) -> int | float:
    """Cards of a pool that a service holds, whole ones or parts that others cannot have: what its pods ask for."""
    held = round(sum(host.owner.count(service) * host.gpu.part for host in site.hosts), 4)
    return int(held) if held == int(held) else held


def _service(
    name: str, models: Mapping[str, ModelPlan], sites: Mapping[str, PoolSite], loaded: LoadedFleet
) -> ServicePlan:
    declared = loaded.fleet.services.get(name) or Service()
    members = [plan for plan in models.values() if plan.service == name]
    upgrade, because = _upgrade(name, declared, sites)
    held = sum(cards_of(name, site) for site in sites.values())
    return ServicePlan(
        cluster=members[0].cluster,
        namespace=loaded.fleet.namespace_of(name),
        tenant=declared.tenant,
        models=tuple(plan.model for plan in members),
        gpus=held,
        cards=_by_resource(name, sites),
        upgrade=upgrade,
        surge_gpus=held if upgrade == "NewCluster" else 0,
        because=because,
    )


def _by_resource(name: str, sites: Mapping[str, PoolSite]) -> dict[str, int]:
    hosts = [host for site in sites.values() for host in site.hosts if name in host.owner]
    resources = dict.fromkeys(host.gpu.resource for host in hosts)
    return {
        resource: sum(host.owner.count(name) for host in hosts if host.gpu.resource == resource)
        for resource in resources
    }


def _devices(service: str, site: PoolSite, gpu: str) -> int:
    """Cards, or parts of the kind `gpu`, that a service holds."""
    return sum(host.owner.count(service) for host in site.hosts if gpu in ("", host.gpu.id))


def _kind(site: PoolSite, gpu: str) -> str:
    return f" parts {gpu}" if site.cut else ""


def _upgrade(name: str, declared: Service, sites: Mapping[str, PoolSite]) -> tuple[str, str]:
    short = [
        f"pool `{site.name}` has {free} free of the {held}{_kind(site, gpu)} that a second cluster would take"
        for site in sites.values()
        for gpu in dict.fromkeys(host.gpu.id for host in site.hosts if site.cut) or [""]
        if (held := _devices(name, site, gpu)) > (free := _devices("", site, gpu))
    ]
    if declared.upgrade:
        waits = declared.upgrade == "NewCluster" and bool(short)
        return declared.upgrade, "pinned in the fleet file" + (f", although {short[0]}: it would wait" if waits else "")
    if short:
        return "None", (
            f"{short[0]}: it would wait for ever. Changes of models are made in place all the same; a change of pods"
            " takes effect when the RayService is made anew"
        )
    return "NewCluster", "the pools have the cards for a second cluster, so that no request is lost"
