"""Services of the plan: the GPUs that each uses, and whether an upgrade can start a second cluster."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rayhelm.facts import Catalog
from rayhelm.facts.tasks import get_task
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.tenants import Service
from rayhelm.planner.access.data_paths import choose_data_path
from rayhelm.planner.placement.inventory import PoolInventory
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.plan import ModelPlan, ServicePlan
from rayhelm.planner.volumes import plan_claim
from rayhelm.planner.workers.plan_workers import plan_workers

__all__ = ["count_service_gpus", "plan_services", "warn_gated_models", "warn_missing_images"]

Devices = dict[tuple[str, str], int]
"""Whole GPUs or parts of them, by pool and kind."""


def plan_services(
    models: Mapping[str, ModelPlan], inventories: Mapping[str, PoolInventory], fleet: Fleet, facts: Catalog
) -> dict[str, ServicePlan]:
    members: dict[str, list[ModelPlan]] = {}
    for plan in models.values():
        members.setdefault(plan.service, []).append(plan)
    free, used = _count_owned(inventories)
    return {
        name: _plan_service(name, members[name], used.get(name, {}), free, inventories, fleet, facts)
        for name in fleet.service_names
    }


def warn_missing_images(models: Mapping[str, ModelPlan], fleet: Fleet) -> Iterator[str]:
    """Yield warnings: an application beside vLLM must be in the image of its cluster, because any node may import
    it."""
    for plan in models.values():
        if get_task(plan.task).server == "application" and not fleet.clusters[plan.cluster].image:
            yield (
                f"the default image does not contain the application that serves `{plan.model}`. Set `image` of"
                f" cluster `{plan.cluster}` to one that does"
            )


def warn_gated_models(
    model_specs: Iterable[ResolvedModelSpec], models: Mapping[str, ModelPlan], fleet: Fleet
) -> Iterator[str]:
    """Yield warnings: gated models that the download Job may not read."""
    for model_spec in model_specs:
        plan = models[model_spec.name]
        if model_spec.model.needs_token and not fleet.clusters[plan.cluster].weights.hub_token:
            yield (
                f"{plan.source} is gated and cluster `{plan.cluster}` has no `weights.hubToken`: the download would"
                " fail, and the workers would wait for it"
            )


def count_service_gpus(service: str, inventory: PoolInventory) -> int | float:
    """Return GPUs of a pool that the pods of a service request, in whole GPUs or parts of partitioned ones."""
    used = round(sum(host.owners.count(service) * host.gpu.part for host in inventory.hosts), 4)
    return int(used) if used == int(used) else used


def _count_owned(inventories: Mapping[str, PoolInventory]) -> tuple[Devices, dict[str, Devices]]:
    """Return the free devices, and those of each service, in the order of the pools."""
    free: Devices = {}
    used: dict[str, Devices] = {}
    for name, inventory in inventories.items():
        for host in inventory.hosts:
            key = (name, host.gpu.id)
            free.setdefault(key, 0)
            for owner in host.owners:
                counts = used.setdefault(owner, {}) if owner else free
                counts[key] = counts.get(key, 0) + 1
    return free, used


def _plan_service(
    name: str,
    members: Sequence[ModelPlan],
    devices: Devices,
    free: Devices,
    inventories: Mapping[str, PoolInventory],
    fleet: Fleet,
    facts: Catalog,
) -> ServicePlan:
    declared = fleet.services.get(name) or Service()
    upgrade, because = _choose_upgrade(declared, devices, free, inventories)
    # Worker groups are in the order of the fleet file, and models in that of their placement.
    order = list(fleet.models)
    models = sorted(members, key=lambda plan: order.index(plan.model))
    path, path_reason = choose_data_path(name, declared.data_path, models, fleet)
    pools = dict.fromkeys(pool for pool, _ in devices)
    used = sum(count_service_gpus(name, inventories[pool]) for pool in pools)
    return ServicePlan(
        cluster=members[0].cluster,
        namespace=fleet.namespace_of(name),
        tenant=declared.tenant,
        models=tuple(plan.model for plan in members),
        gpus=used,
        gpu_resources=_count_by_resource(devices, inventories),
        upgrade=upgrade,
        upgrade_surge_gpus=used if upgrade == "NewCluster" else 0,
        upgrade_reason=because,
        data_path=path,
        data_path_reason=path_reason,
        workers=plan_workers(models, fleet, facts),
        claim=plan_claim(name, models, upgrade, fleet),
    )


def _count_by_resource(devices: Devices, inventories: Mapping[str, PoolInventory]) -> dict[str, int]:
    resources: dict[str, int] = {}
    for (pool, gpu), count in devices.items():
        resource = next(host.gpu.resource for host in inventories[pool].hosts if host.gpu.id == gpu)
        resources[resource] = resources.get(resource, 0) + count
    return resources


def _count_by_unit(devices: Devices, inventories: Mapping[str, PoolInventory]) -> dict[tuple[str, str], int]:
    """Return the devices of each pool, by kind of part if its GPUs are partitioned."""
    units: dict[tuple[str, str], int] = {}
    for (pool, gpu), count in devices.items():
        unit = (pool, gpu if inventories[pool].partitioning else "")
        units[unit] = units.get(unit, 0) + count
    return units


def _name_unit(inventory: PoolInventory, gpu: str, count: int) -> str:
    unit = gpu if inventory.partitioning else "GPU"
    return unit if count == 1 else f"{unit}s"


def _choose_upgrade(
    declared: Service, devices: Devices, free: Devices, inventories: Mapping[str, PoolInventory]
) -> tuple[str, str]:
    pools = {pool for pool, _ in devices}
    unused = _count_by_unit({key: count for key, count in free.items() if key[0] in pools}, inventories)
    short = [
        f"A second Ray cluster needs {used} {_name_unit(inventories[pool], gpu, used)}, and pool `{pool}`"
        f" has {unused[pool, gpu]} free"
        for (pool, gpu), used in _count_by_unit(devices, inventories).items()
        if used > unused[pool, gpu]
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
