"""Shapes with the replicas of a model on two pools: on demand and spot, or a cheaper pool that has not enough GPUs.

In the fleet file these are two models; `servedAs` of the second one joins them at the gateway. Each has its part of the
load and the number of its replicas.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import ceil, inf
from typing import Any

from rayhelm.planner.alternative import LEAST_SAVING, Alternative, find_cheapest
from rayhelm.planner.alternative_change import pin_split, share_load
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.inventory import PoolInventory
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.placement.options import ModelOptions, PoolSplits
from rayhelm.planner.plan import ModelPlan, Plan
from rayhelm.planner.shape import write_parallelism

__all__ = ["list_pools"]

_FLOOR = 0.5
"""Part of the replicas that stays on demand, so that the loss of all spot nodes at once leaves half of them."""
_COUNTS = (1, 2, 4, 8)
"""Replicas that are tried on the first pool, besides as many as it has room for."""


def list_pools(
    model_spec: ResolvedModelSpec,
    now: ModelPlan,
    plan: Plan,
    inventories: Mapping[str, PoolInventory],
) -> Iterator[Alternative]:
    """Yield the shapes over two pools. Models with pinned replicas or another served name have none."""
    declared = model_spec.declared
    if declared.replicas is not None or now.prefill_decode or declared.served_as or now.price_per_hour is None:
        return
    yield from _list_spot(now, plan, inventories)
    if declared.traffic and declared.pool is None:
        yield from _list_two_pools(model_spec, now, plan, inventories)


def _list_spot(now: ModelPlan, plan: Plan, inventories: Mapping[str, PoolInventory]) -> Iterator[Alternative]:
    """Yield a floor of replicas on demand, and the others on a spot pool with the same GPU."""
    pool, price = inventories[now.pool], now.price_per_hour
    floor = ceil(now.replicas * _FLOOR)
    count = now.replicas - floor
    if not count or not price or pool.pool.spot or not pool.is_uniform or pool.partitioning:
        return
    gpu = pool.hosts[0].gpu
    spots = {name: each for name, each in inventories.items() if each.pool.spot and each.gpu_name == gpu.id}
    prices = {name: each.price for name, each in spots.items() if each.price is not None}
    cheapest = min(prices, key=lambda name: prices[name], default="")
    spot_price = prices[cheapest] if cheapest else gpu.price.spot
    source = "`price` of the spot pool" if prices else f"spot, {gpu.price.spot_source}; the pool has to be added"
    each_now = price / now.replicas
    each_spot = None if spot_price is None or not pool.price else each_now * spot_price / pool.price
    total = None if each_spot is None else floor * each_now + count * each_spot
    if total is not None and price - total <= LEAST_SAVING * price:
        return
    change = {} if total is None else _write_spot(now, floor, cheapest, spot_price or 0.0, plan)
    unknown = f"the spot price of {gpu.id} is unknown: set `price` of that pool"
    yield Alternative(
        kind="spot",
        what=f"replicas: {floor}, and replicas: {count} on a spot pool",
        change=change,
        pool="",
        gpu=now.gpu,
        gpus=now.gpus,
        tensor_parallel_size=now.tensor_parallel_size,
        pipeline_parallel_size=now.pipeline_parallel_size,
        replicas=now.replicas,
        price_per_hour=None if total is None else round(total, 4),
        saving_per_hour=None if total is None else round(price - total, 4),
        ttft_s=now.estimate.ttft_s,
        tpot_s=now.estimate.tpot_s,
        note=f"`servedAs: {{model: {now.served_as}}}` joins both; {unknown if total is None else source}",
    )


def _write_spot(now: ModelPlan, floor: int, cheapest: str, price: float, plan: Plan) -> dict[str, Any]:
    """Return the change of the fleet file: the second model, and a spot pool if none with this GPU is in the fleet."""
    pool, count = plan.source.data["pools"][now.pool], now.replicas - floor
    each = now.gpus / now.replicas / now.nodes_per_replica
    added: dict[str, Any] = {}
    if not cheapest:
        cheapest = _find_free_name(f"{now.pool}-spot", plan.declared.pools)
        labels = {**(pool.get("nodeSelector") or {}), "rayhelm.dev/pool": cheapest}
        nodes = max(now.nodes_per_replica * count, ceil(count * each / (pool.get("gpusPerNode") or 1)))
        spot = {"spot": "karpenter", "nodes": nodes, "price": f"{price:g} USD/h", "nodeSelector": labels}
        added = {"pools": {cheapest: {**pool, **spot}}}
        if not pool.get("nodeSelector"):
            added["pools"][now.pool] = {"nodeSelector": {"rayhelm.dev/pool": now.pool}}
    split = write_parallelism(now.shape)
    parts = ((now.pool, floor, split), (cheapest, count, split))
    return added | {"models": _write_parts(now, parts, [floor / now.replicas, count / now.replicas], plan)}


def _write_parts(
    now: ModelPlan, parts: tuple[tuple[str, int, dict[str, Any]], ...], loads: list[float], plan: Plan
) -> dict[str, Any]:
    """Return the model with its first part, and a second model with the other one. `loads`: part of the load of each,
    0 to 1."""
    written = plan.source.data["models"][now.model]
    (pool, count, split), (other, rest, second) = parts
    cleared = dict.fromkeys(written.get("parallelism") or {})
    first = {"pool": pool, "replicas": count, "parallelism": cleared | split, **share_load(written, loads[0])}
    kept = {key: value for key, value in written.items() if key != "aliases"}
    added = {"pool": other, "replicas": rest, "parallelism": second, "servedAs": {"model": now.served_as}}
    if traffic := share_load(written, loads[1]):
        added["traffic"] = {**written["traffic"], **traffic["traffic"]}
    return {now.model: first, _find_free_name(f"{now.model}-2", plan.declared.models): kept | added}


def _find_free_name(name: str, used: Mapping[str, object]) -> str:
    while name in used:
        name += "-2"
    return name


def _list_two_pools(
    model_spec: ResolvedModelSpec,
    now: ModelPlan,
    plan: Plan,
    inventories: Mapping[str, PoolInventory],
) -> Iterator[Alternative]:
    """Yield the cheapest pair: as many replicas as the first pool has room for, and the rest of the load on another."""
    best: tuple[float, Candidate, Candidate] | None = None
    for name in inventories:
        for first, rest in _list_pairs(model_spec, name, now, plan, inventories):
            price = (first.price_per_hour or 0.0) + (rest.price_per_hour or 0.0)
            if best is None or price < best[0]:
                best = price, first, rest
    if best is None or (now.price_per_hour or 0.0) - best[0] <= LEAST_SAVING * (now.price_per_hour or 0.0):
        return
    price, first, rest = best
    one, other = (each.split.inventory.name for each in (first, rest))
    assert model_spec.declared.traffic
    part = first.replicas * (first.capacity.carried or 0.0) / model_spec.declared.traffic.peak_rate
    written = plan.source.data["models"][now.model]
    parts = tuple((each.split.inventory.name, each.replicas, pin_split(written, each)) for each in (first, rest))
    slower = max((first, rest), key=lambda each: each.capacity.tpot_s or each.capacity.ttft_s or 0.0)
    yield Alternative(
        kind="pools",
        what=f"replicas: {first.replicas} on pool {one}, and replicas: {rest.replicas} on pool {other}",
        change={"models": _write_parts(now, parts, [part, 1 - part], plan)},
        pool=f"{one}+{other}",
        gpu="+".join(dict.fromkeys((first.split.gpu_name, rest.split.gpu_name))),
        gpus=round(first.gpus + rest.gpus, 4),
        tensor_parallel_size=first.split.shape.tp,
        pipeline_parallel_size=first.split.shape.pp,
        replicas=first.replicas + rest.replicas,
        price_per_hour=round(price, 4),
        saving_per_hour=round((now.price_per_hour or 0.0) - price, 4),
        ttft_s=slower.capacity.ttft_s,
        tpot_s=slower.capacity.tpot_s,
        note=f"`servedAs: {{model: {now.served_as}}}` joins both; the latency is the one of the slower pool",
    )


def _list_pairs(
    model_spec: ResolvedModelSpec, name: str, now: ModelPlan, plan: Plan, inventories: Mapping[str, PoolInventory]
) -> Iterator[tuple[Candidate, Candidate]]:
    """Yield some replicas on one pool, each with the cheapest replicas for the rest of the load on the other pools."""
    assert model_spec.declared.traffic
    load = model_spec.declared.traffic.peak_rate
    free = {
        pool: each.gpus - each.used + (now.gpus if pool == now.pool else 0.0)
        for pool, each in plan.pools.items()
        if pool in inventories
    }
    here, others = {name: inventories[name]}, {pool: each for pool, each in inventories.items() if pool != name}
    alone = _find(model_spec, load, here, {name: inf})
    if (
        not others
        or not alone
        or not alone.capacity.carried
        or (alone.price_per_hour or inf) >= (now.price_per_hour or 0.0)
    ):
        return
    most = min(int((free[name] + 1e-9) / (alone.split.whole_gpu_count * alone.share)), alone.replicas - 1)
    for count in sorted({most, *(step for step in _COUNTS if step < most)} - {0}):
        carried = count * alone.capacity.carried * (1 - 1e-9)
        first = _find(model_spec, carried, here, free)
        rest = _find(model_spec, load - carried, others, free)
        if first and rest:
            yield first, rest


def _find(
    model_spec: ResolvedModelSpec, load: float, inventories: Mapping[str, PoolInventory], free: Mapping[str, float]
) -> Candidate | None:
    """Return the cheapest candidate for a part of the load, requests/s."""
    assert model_spec.declared.traffic
    traffic = model_spec.declared.traffic.model_copy(update={"requests_per_second": load, "burst": None})
    spec = replace(model_spec, declared=model_spec.declared.model_copy(update={"traffic": traffic}))
    options = ModelOptions(spec, PoolSplits(inventories), None)
    return find_cheapest(options, lambda found: found.gpus <= free[found.split.inventory.name] + 1e-6)
