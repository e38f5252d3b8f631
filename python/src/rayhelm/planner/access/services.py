"""Services of the plan: the GPUs that each uses, and whether an upgrade can start a second cluster."""

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
    return {name: _plan_service(name, models, inventories, loaded) for name in loaded.fleet.service_names}


def warn_missing_images(models: Mapping[str, ModelPlan], loaded: LoadedFleet) -> Iterator[str]:
    """Yield warnings: an application beside vLLM must be in the image of its cluster, because any node may import
    it."""
    for plan in models.values():
        if get_task(plan.task).server == "application" and not loaded.fleet.clusters[plan.cluster].image:
            yield (
                f"the default image does not contain the application that serves `{plan.model}`. Set `image` of"
                f" cluster `{plan.cluster}` to one that does"
            )


def warn_gated_models(
    model_specs: Iterable[ResolvedModelSpec], models: Mapping[str, ModelPlan], loaded: LoadedFleet
) -> Iterator[str]:
    """Yield warnings: gated models that the download Job may not read."""
    for model_spec in model_specs:
        plan = models[model_spec.name]
        if model_spec.model.needs_token and not loaded.fleet.clusters[plan.cluster].weights.hub_token:
            yield (
                f"{plan.source} is gated and cluster `{plan.cluster}` has no `weights.hubToken`: the download would"
                " fail, and the workers would wait for it"
            )


def count_service_gpus(service: str, inventory: PoolInventory) -> int | float:
    """Return GPUs of a pool that the pods of a service request, in whole GPUs or parts of partitioned ones."""
    used = round(sum(host.owners.count(service) * host.gpu.part for host in inventory.hosts), 4)
    return int(used) if used == int(used) else used


def _plan_service(
    name: str, models: Mapping[str, ModelPlan], inventories: Mapping[str, PoolInventory], loaded: LoadedFleet
) -> ServicePlan:
    declared = loaded.fleet.services.get(name) or Service()
    members = [plan for plan in models.values() if plan.service == name]
    upgrade, because = _choose_upgrade(name, declared, inventories)
    used = sum(count_service_gpus(name, inventory) for inventory in inventories.values())
    return ServicePlan(
        cluster=members[0].cluster,
        namespace=loaded.fleet.namespace_of(name),
        tenant=declared.tenant,
        models=tuple(plan.model for plan in members),
        gpus=used,
        gpu_resources=_count_by_resource(name, inventories),
        upgrade=upgrade,
        upgrade_surge_gpus=used if upgrade == "NewCluster" else 0,
        upgrade_reason=because,
    )


def _count_by_resource(name: str, inventories: Mapping[str, PoolInventory]) -> dict[str, int]:
    hosts = [host for inventory in inventories.values() for host in inventory.hosts if name in host.owners]
    resources = dict.fromkeys(host.gpu.resource for host in hosts)
    return {
        resource: sum(host.owners.count(name) for host in hosts if host.gpu.resource == resource)
        for resource in resources
    }


def _count_devices(service: str, inventory: PoolInventory, gpu: str) -> int:
    """Return GPUs, or parts of the kind `gpu`, that a service uses; an empty service counts the free ones."""
    return sum(host.owners.count(service) for host in inventory.hosts if gpu in ("", host.gpu.id))


def _name_unit(inventory: PoolInventory, gpu: str, count: int) -> str:
    unit = gpu if inventory.partitioning else "GPU"
    return unit if count == 1 else f"{unit}s"


def _choose_upgrade(name: str, declared: Service, inventories: Mapping[str, PoolInventory]) -> tuple[str, str]:
    short = [
        f"A second Ray cluster needs {used} {_name_unit(inventory, gpu, used)}, and pool `{inventory.name}`"
        f" has {free} free"
        for inventory in inventories.values()
        for gpu in dict.fromkeys(host.gpu.id for host in inventory.hosts if inventory.partitioning) or [""]
        if (used := _count_devices(name, inventory, gpu)) > (free := _count_devices("", inventory, gpu))
    ]
    if declared.upgrade:
        waits = declared.upgrade == "NewCluster" and bool(short)
        return declared.upgrade, "set in the fleet file" + (f". {short[0]}: the upgrade would wait" if waits else "")
    if short:
        return "None", (
            f"{short[0]}: the upgrade would never finish. Serve config changes still apply in place; pod changes"
            " apply only after the RayService is recreated"
        )
    return (
        "NewCluster",
        "the pools have enough free GPUs for a second Ray cluster, which takes over without losing requests",
    )
