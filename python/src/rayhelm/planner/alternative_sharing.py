"""Shapes with less than a GPU for a replica: models of one service on fractions of a GPU, time slices and MIG.

They save only what the models together leave free, so models are placed together, and whole GPUs are counted.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from rayhelm.catalog import Catalog
from rayhelm.errors import FleetError
from rayhelm.planner.alternative import LEAST_SAVING, Alternative, find_cheapest
from rayhelm.planner.placement.allocate import allocate, count_possible_replicas
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.gpu_partitioning import partition_gpus
from rayhelm.planner.placement.inventory import HostInventory, PoolInventory
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.placement.options import ModelOptions, PoolSplits
from rayhelm.planner.plan import ModelPlan, Plan
from rayhelm.spec.load import LoadedFleet
from rayhelm.spec.pools import Sharing

__all__ = ["list_sharing"]

_SHARES = (2, 3, 4, 7)
"""Parts of a GPU that are tried: those of the MIG profiles of one size."""


@dataclass(frozen=True)
class _Shape:
    """Models together on parts of the GPUs of a pool."""

    what: str
    note: str
    placed: Mapping[str, Candidate]
    gpus: int
    """Whole GPUs, also if a part of the last one stays free."""
    gpus_now: int
    price: float
    """USD per GPU and hour."""

    @property
    def saving(self) -> float:
        """USD per hour."""
        return (self.gpus_now - self.gpus) * self.price


def list_sharing(
    model_specs: Mapping[str, ResolvedModelSpec],
    plan: Plan,
    inventories: Mapping[str, PoolInventory],
    loaded: LoadedFleet,
    known: Catalog,
) -> dict[str, list[Alternative]]:
    """Return the shapes of each model in which its GPU is shared, if GPUs become free."""
    found: dict[str, list[Alternative]] = {}
    for inventory in inventories.values():
        if not inventory.is_uniform or inventory.partitioning or not inventory.price:
            continue
        members = [model_specs[name] for name, model in plan.models.items() if _may_share(model, inventory.name)]
        shapes = [
            *_list_services(members, plan, inventory, loaded),
            *_list_partitions(members, plan, inventory, loaded, known),
        ]
        for shape in shapes:
            if shape.saving <= LEAST_SAVING * shape.gpus_now * shape.price:
                continue
            for name, candidate in shape.placed.items():
                found.setdefault(name, []).append(_describe(shape, plan.models[name], candidate))
    return found


def _may_share(model: ModelPlan, pool: str) -> bool:
    """Return whether each replica of a model has a GPU alone, and no pin says so."""
    is_single = model.tensor_parallel_size * model.pipeline_parallel_size == 1 and model.gpu_fraction == 1
    return model.pool == pool and is_single and not {"parallelism", "gpu_fraction"} & set(model.pinned)


def _list_services(
    members: Sequence[ResolvedModelSpec], plan: Plan, inventory: PoolInventory, loaded: LoadedFleet
) -> Iterator[_Shape]:
    """Yield the models of each owner in one service."""
    by_owner: dict[str | None, list[ResolvedModelSpec]] = {}
    for each in members:
        if not each.has_shared_service and not each.declared.served_as:
            by_owner.setdefault(loaded.fleet.owner_of(each.service), []).append(each)
    for group in by_owner.values():
        service = group[0].service
        together = [replace(each, service=service, has_shared_service=True) for each in group]
        fresh = _copy_pool(inventory)
        placed = _place(together, fresh)
        if len(placed) > 1:
            gpus = sum(bool(owner) for host in fresh.hosts for owner in host.owners)
            note = "models of one service start and upgrade together"
            yield _build_shape(f"service: {service}", note, placed, gpus, plan, inventory)


def _list_partitions(
    members: Sequence[ResolvedModelSpec],
    plan: Plan,
    inventory: PoolInventory,
    loaded: LoadedFleet,
    known: Catalog,
) -> Iterator[_Shape]:
    """Yield the number of parts that saves most, for time slices and for MIG."""
    for sharing in (Sharing(shares=2), Sharing(shares=2, isolation="hardware")):
        shapes = []
        for shares in _SHARES:
            wanted = sharing.model_copy(update={"shares": shares})
            fresh = _partition(inventory, wanted, loaded, known)
            placed = _place(members, fresh) if fresh else {}
            if not placed:
                continue
            replicas = sum(candidate.replicas for candidate in placed.values())
            isolation = "" if wanted.isolation == "none" else ", isolation: hardware"
            what = f"pools.{inventory.name}.sharing: {{shares: {shares}{isolation}}}"
            gpus = ceil(replicas / shares)
            shapes.append(
                _build_shape(what, _describe_partitions(placed, plan, inventory), placed, gpus, plan, inventory)
            )
        if shapes:
            yield max(shapes, key=lambda shape: shape.saving)


def _describe_partitions(placed: Mapping[str, Candidate], plan: Plan, inventory: PoolInventory) -> str:
    others = [name for name, model in plan.models.items() if model.pool == inventory.name and name not in placed]
    if not others:
        return "`sharing` holds for all GPUs of the pool"
    return f"`sharing` holds for all GPUs of a pool; these models need another one: {', '.join(others)}"


def _partition(inventory: PoolInventory, sharing: Sharing, loaded: LoadedFleet, known: Catalog) -> PoolInventory | None:
    """Return the empty pool with partitioned GPUs; None if they have no such parts."""
    pool, gpu = inventory.pool.model_copy(update={"sharing": sharing}), inventory.hosts[0].gpu
    try:
        partitioning = partition_gpus(inventory.name, pool, gpu, loaded, known)
    except FleetError:
        return None
    assert partitioning
    hosts = [
        HostInventory(host.name, part, host.gpu_count * count)
        for host in inventory.hosts
        for part, count in partitioning.parts
    ]
    return replace(inventory, pool=pool, hosts=hosts, partitioning=partitioning)


def _copy_pool(inventory: PoolInventory) -> PoolInventory:
    """Return the empty pool."""
    hosts = [HostInventory(host.name, host.gpu, host.gpu_count) for host in inventory.hosts]
    return replace(inventory, hosts=hosts)


def _place(model_specs: Sequence[ResolvedModelSpec], fresh: PoolInventory) -> dict[str, Candidate]:
    """Place the models on parts of the GPUs of an empty pool, and return those that fit."""
    splits = PoolSplits({fresh.name: fresh})
    placed = {}
    for each in model_specs:
        here = replace(each, declared=each.declared.model_copy(update={"pool": fresh.name}))
        best = find_cheapest(ModelOptions(here, splits, None), _is_part_with_room)
        if best:
            allocate(best)
            placed[each.name] = best
    return placed


def _is_part_with_room(candidate: Candidate) -> bool:
    is_part = candidate.split.gpu_count == 1 and candidate.share * candidate.split.gpu.part < 1
    return is_part and count_possible_replicas(candidate) >= candidate.replicas


def _build_shape(
    what: str, note: str, placed: Mapping[str, Candidate], gpus: int, plan: Plan, inventory: PoolInventory
) -> _Shape:
    now = sum(plan.models[name].replicas for name in placed)
    together = f"{', '.join(placed)}: {gpus} GPU{'s' if gpus > 1 else ''} instead of {now}"
    assert inventory.price
    return _Shape(what, f"{together}; {note}", placed, gpus, now, inventory.price)


def _describe(shape: _Shape, now: ModelPlan, candidate: Candidate) -> Alternative:
    """Return the shape of one model, which pays for the GPUs in proportion to its parts."""
    parts = {name: each.gpus for name, each in shape.placed.items()}
    gpus = shape.gpus * parts[now.model] / sum(parts.values())
    price = gpus * shape.price
    return Alternative(
        kind="sharing",
        what=shape.what,
        pool=now.pool,
        gpu=candidate.split.gpu_name,
        gpus=round(gpus, 4),
        tensor_parallel_size=1,
        pipeline_parallel_size=1,
        replicas=candidate.replicas,
        price_per_hour=round(price, 4),
        saving_per_hour=round((now.price_per_hour or 0.0) - price, 4),
        ttft_s=candidate.capacity.ttft_s,
        tpot_s=candidate.capacity.tpot_s,
        note=shape.note,
    )
