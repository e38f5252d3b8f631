"""Services out of their models: what they hold, and what an upgrade can do with the cards that are left."""

from collections.abc import Iterable, Iterator, Mapping

from rayhelm.catalog.tasks import get_task
from rayhelm.planner.placement.inventory import PoolInventory
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.plan import ModelPlan, ServicePlan
from rayhelm.spec.load import LoadedFleet
from rayhelm.spec.tenants import Service

__all__ = ["count_service_gpus", "plan_services", "warn_gated_models", "warn_missing_images"]


def plan_services(
    models: Mapping[str, ModelPlan], inventories: Mapping[str, PoolInventory], loaded: LoadedFleet
) -> dict[str, ServicePlan]:
    return {name: _service(name, models, inventories, loaded) for name in loaded.fleet.service_names}


def warn_missing_images(models: Mapping[str, ModelPlan], loaded: LoadedFleet) -> Iterator[str]:
    """Applications beside vLLM have to be in every image of their cluster: any node may import them."""
    for plan in models.values():
        if get_task(plan.task).server == "application" and not loaded.fleet.clusters[plan.cluster].image:
            yield (
                f"the stock image does not hold the application that serves `{plan.model}`: give cluster"
                f" `{plan.cluster}` an `image` that does"
            )


def warn_gated_models(
    model_specs: Iterable[ResolvedModelSpec], models: Mapping[str, ModelPlan], loaded: LoadedFleet
) -> Iterator[str]:
    """Models that the download Job would be refused."""
    for model_spec in model_specs:
        plan = models[model_spec.name]
        if model_spec.model.needs_token and not loaded.fleet.clusters[plan.cluster].weights.hub_token:
            yield (
                f"{plan.source} is gated, and cluster `{plan.cluster}` has no `weights.hubToken`: the download would be"
                " refused, and the workers would wait for it"
            )


def count_service_gpus(service: str, inventory: PoolInventory) -> int | float:
    """Cards of a pool that a service holds, whole ones or parts that others cannot have: what its pods ask for."""
    held = round(sum(host.owners.count(service) * host.gpu.part for host in inventory.hosts), 4)
    return int(held) if held == int(held) else held


def _service(
    name: str, models: Mapping[str, ModelPlan], inventories: Mapping[str, PoolInventory], loaded: LoadedFleet
) -> ServicePlan:
    declared = loaded.fleet.services.get(name) or Service()
    members = [plan for plan in models.values() if plan.service == name]
    upgrade, because = _upgrade(name, declared, inventories)
    held = sum(count_service_gpus(name, inventory) for inventory in inventories.values())
    return ServicePlan(
        cluster=members[0].cluster,
        namespace=loaded.fleet.namespace_of(name),
        tenant=declared.tenant,
        models=tuple(plan.model for plan in members),
        gpus=held,
        gpu_resources=_by_resource(name, inventories),
        upgrade=upgrade,
        upgrade_surge_gpus=held if upgrade == "NewCluster" else 0,
        upgrade_reason=because,
    )


def _by_resource(name: str, inventories: Mapping[str, PoolInventory]) -> dict[str, int]:
    hosts = [host for inventory in inventories.values() for host in inventory.hosts if name in host.owners]
    resources = dict.fromkeys(host.gpu.resource for host in hosts)
    return {
        resource: sum(host.owners.count(name) for host in hosts if host.gpu.resource == resource)
        for resource in resources
    }


def _devices(service: str, inventory: PoolInventory, gpu: str) -> int:
    """Cards, or parts of the kind `gpu`, that a service holds."""
    return sum(host.owners.count(service) for host in inventory.hosts if gpu in ("", host.gpu.id))


def _kind(inventory: PoolInventory, gpu: str) -> str:
    return f" parts {gpu}" if inventory.partitioning else ""


def _upgrade(name: str, declared: Service, inventories: Mapping[str, PoolInventory]) -> tuple[str, str]:
    short = [
        f"pool `{inventory.name}` has {free} free of the {held}{_kind(inventory, gpu)} that a second cluster would take"
        for inventory in inventories.values()
        for gpu in dict.fromkeys(host.gpu.id for host in inventory.hosts if inventory.partitioning) or [""]
        if (held := _devices(name, inventory, gpu)) > (free := _devices("", inventory, gpu))
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
