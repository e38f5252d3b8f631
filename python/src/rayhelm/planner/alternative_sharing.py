"""Shapes with less than a GPU for a replica: models of one service on fractions of a GPU, time slices and MIG.

They save only what the models together leave free, so models are placed together, and whole GPUs are counted. The price
of each model is that of its parts, as in the plan. The saving of whole GPUs is divided among the models.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from rayhelm.errors import attempt
from rayhelm.facts import Catalog
from rayhelm.fleet.pools import Sharing
from rayhelm.planner.alternative import LEAST_SAVING, Alternative, find_cheapest
from rayhelm.planner.placement.allocate import allocate, count_possible_replicas
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.gpu_partitioning import partition_gpus
from rayhelm.planner.placement.inventory import HostInventory, PoolInventory
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.placement.options import ModelOptions, PoolSplits
from rayhelm.planner.plan import ModelPlan, Plan

__all__ = ["list_sharing"]

_SHARES = (2, 3, 4, 7)
"""Equal MIG instances of a GPU that are tried: those of the profiles of one size."""
_SLICES = (2, 3, 4, 6, 8, 12, 16)
"""Time slices of a GPU that are tried."""
_LABEL = "rayhelm.dev/pool"
_MOST_FOR_LAYOUTS = 20
"""Models of a pool up to which MIG instances of different sizes are tried."""


@dataclass(frozen=True)
class _Shape:
    """Models together on parts of the GPUs of a pool."""

    what: str
    change: dict[str, Any]
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
    facts: Catalog,
) -> dict[str, list[Alternative]]:
    """Return the shapes of each model in which its GPU is shared, if GPUs become free."""
    found: dict[str, list[Alternative]] = {}
    for inventory in inventories.values():
        if not inventory.is_uniform or inventory.partitioning or not inventory.price:
            continue
        members = [
            model_specs[name]
            for name, model in plan.models.items()
            if name in model_specs and _may_share(model, inventory.name)
        ]
        shapes = [
            *_list_services(members, plan, inventory),
            *_list_partitions(members, plan, inventory, facts),
        ]
        for shape in shapes:
            if shape.saving <= LEAST_SAVING * shape.gpus_now * shape.price:
                continue
            for name, candidate in shape.placed.items():
                found.setdefault(name, []).append(_describe(shape, plan.models[name], candidate))
    return found


def _may_share(model: ModelPlan, pool: str) -> bool:
    """Return whether each replica of a model has a GPU alone, and no pin says so."""
    is_single = model.shape.tp * model.shape.pp == 1 and model.gpu_fraction == 1
    return model.pool == pool and is_single and not {"parallelism", "gpu_fraction"} & set(model.pinned)


def _list_services(members: Sequence[ResolvedModelSpec], plan: Plan, inventory: PoolInventory) -> Iterator[_Shape]:
    """Yield the models of each owner in one service."""
    by_owner: dict[str | None, list[ResolvedModelSpec]] = {}
    for each in members:
        if not each.has_shared_service and not each.declared.served_as:
            by_owner.setdefault(plan.declared.owner_of(each.service), []).append(each)
    for group in by_owner.values():
        service = group[0].service
        together = [replace(each, service=service, has_shared_service=True) for each in group]
        fresh = _copy_pool(inventory)
        placed = _place(together, fresh)
        if len(placed) > 1:
            gpus = sum(bool(owner) for host in fresh.hosts for owner in host.owners)
            note = "models of one service start and upgrade together"
            change = {"models": {name: {"service": service} for name in placed}}
            yield _build_shape(f"service: {service}", change, note, placed, gpus, plan, inventory)


def _list_partitions(
    members: Sequence[ResolvedModelSpec],
    plan: Plan,
    inventory: PoolInventory,
    facts: Catalog,
) -> Iterator[_Shape]:
    """Yield the parts that save most, for time slices and for MIG; with equal savings, the largest parts."""
    for wanted in (_list_slices(), _list_instances(inventory, len(members), facts)):
        shapes = []
        for sharing in wanted:
            fresh = _partition(inventory, sharing, facts)
            placed = _place(members, fresh) if fresh else {}
            if not fresh or not placed:
                continue
            pool, change = _write_sharing(inventory, sharing, placed, _count_gpus(fresh, placed), plan)
            what = f"pools.{pool}.sharing: {_describe_sharing(sharing)}"
            note = f"`sharing` holds for all GPUs of pool `{pool}`"
            if pool != inventory.name:
                note += f", which takes nodes of pool `{inventory.name}`"
            shapes.append(_build_shape(what, change, note, placed, _count_gpus(fresh, placed), plan, inventory))
        if shapes:
            yield max(shapes, key=lambda shape: shape.saving)


def _list_slices() -> Iterator[Sharing]:
    return (Sharing(shares=shares) for shares in _SLICES)


def _list_instances(inventory: PoolInventory, models: int, facts: Catalog) -> Iterator[Sharing]:
    """Yield equal MIG instances, then the layouts of different ones that leave no memory slice free."""
    yield from (Sharing(shares=shares, isolation="hardware") for shares in _SHARES)
    table = facts.mig(inventory.hosts[0].gpu)
    if table and models <= _MOST_FOR_LAYOUTS:
        yield from (Sharing(layout=layout, isolation="hardware") for layout in table.largest if len(layout) > 1)


def _describe_sharing(sharing: Sharing) -> str:
    if sharing.layout:
        return f"{{layout: {{{', '.join(f'{profile}: {count}' for profile, count in sharing.layout.items())}}}}}"
    return f"{{shares: {sharing.shares}{'' if sharing.isolation == 'none' else ', isolation: hardware'}}}"


def _count_gpus(fresh: PoolInventory, placed: Mapping[str, Candidate]) -> int:
    """Return the whole GPUs whose parts hold the models."""
    assert fresh.partitioning
    used: dict[str, int] = {}
    for each in placed.values():
        used[each.split.gpu.id] = used.get(each.split.gpu.id, 0) + each.replicas
    return max(ceil(used.get(part.id, 0) / count) for part, count in fresh.partitioning.parts)


def _write_sharing(
    inventory: PoolInventory,
    sharing: Sharing,
    placed: Mapping[str, Candidate],
    gpus: int,
    plan: Plan,
) -> tuple[str, dict[str, Any]]:
    """Return the pool and the change of the fleet file. If other models are on the pool, a new pool takes some of its
    nodes."""
    keys = sharing.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if sharing.layout:
        keys.pop("isolation")
    name, written = inventory.name, plan.source.data["pools"][inventory.name]
    if all(each in placed for each, model in plan.models.items() if model.pool == name):
        return name, {"pools": {name: {"sharing": keys}}, "models": {each: {"pool": name} for each in placed}}
    nodes = ceil(gpus / (inventory.pool.gpus_per_node or 1))
    added, labels = f"{name}-shared", written.get("nodeSelector") or {}
    while added in plan.declared.pools:
        added += "-2"
    rest = {"nodes": inventory.node_count - nodes, "nodeSelector": {**labels, _LABEL: name}}
    parts = {**written, "nodes": nodes, "nodeSelector": {**labels, _LABEL: added}, "sharing": keys}
    return added, {"pools": {name: rest, added: parts}, "models": {each: {"pool": added} for each in placed}}


def _partition(inventory: PoolInventory, sharing: Sharing, facts: Catalog) -> PoolInventory | None:
    """Return the empty pool with partitioned GPUs; None if they have no such parts, or other ones already."""
    if inventory.pool.gpu_resource:
        return None
    pool, gpu = inventory.pool.model_copy(update={"sharing": sharing}), inventory.hosts[0].gpu
    if not (partitioning := attempt(lambda: partition_gpus(inventory.name, pool, gpu, facts))):
        return None
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
    is_part = candidate.split.shape.gpu_count == 1 and candidate.share * candidate.split.gpu.part < 1
    return is_part and count_possible_replicas(candidate) >= candidate.replicas


def _build_shape(
    what: str,
    change: dict[str, Any],
    note: str,
    placed: Mapping[str, Candidate],
    gpus: int,
    plan: Plan,
    inventory: PoolInventory,
) -> _Shape:
    now = sum(plan.models[name].replicas for name in placed)
    together = f"{', '.join(placed)}: {gpus} GPU{'s' if gpus > 1 else ''} instead of {now}"
    assert inventory.price
    return _Shape(what, change, f"{together}; {note}", placed, gpus, now, inventory.price)


def _describe(shape: _Shape, now: ModelPlan, candidate: Candidate) -> Alternative:
    """Return the shape of one model. What whole GPUs save is divided in proportion to what each model gives up, so that
    a model saves only if its price is lower. Together they give up more: a part of a GPU can stay free."""
    given = shape.gpus_now - sum(_count_used(each) for each in shape.placed.values())
    saving = shape.saving * (now.replicas - _count_used(candidate)) / given
    price = candidate.price_per_hour
    return Alternative(
        kind="sharing",
        what=shape.what,
        change=shape.change,
        pool=now.pool,
        gpu=candidate.split.gpu_name,
        gpus=round(candidate.gpus, 4),
        tensor_parallel_size=1,
        pipeline_parallel_size=1,
        replicas=candidate.replicas,
        price_per_hour=None if price is None else round(price, 4),
        saving_per_hour=round(saving, 4),
        ttft_s=candidate.capacity.ttft_s,
        tpot_s=candidate.capacity.tpot_s,
        note=shape.note,
    )


def _count_used(candidate: Candidate) -> float:
    """Return the whole GPUs that the parts of a model add up to."""
    return candidate.gpus * candidate.split.gpu.part
