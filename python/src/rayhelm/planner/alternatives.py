"""Cheaper and safer shapes of each model than the planned one, with their price: a person decides on them.

Each is planned alone, with the GPUs that the plan leaves free and those of the model itself.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from rayhelm.facts import Catalog
from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.model import Checkpoint
from rayhelm.facts.tensors import count_weights
from rayhelm.fleet.check_prefill_decode import SERVED_TASKS
from rayhelm.fleet.models import Parallelism
from rayhelm.fleet.pools import Pool
from rayhelm.planner.alternative import LEAST_SAVING, Alternative, Kind, find_cheapest
from rayhelm.planner.alternative_change import confirm, pin_split
from rayhelm.planner.alternative_pools import list_pools
from rayhelm.planner.alternative_sharing import list_sharing
from rayhelm.planner.blocked_shares import leave_out_blocked_shares
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.choose import rank
from rayhelm.planner.placement.inventory import HostInventory, PoolInventory, build_inventories
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.placement.options import ModelOptions, PoolSplits
from rayhelm.planner.placement.pool_network import PoolNetwork
from rayhelm.planner.plan import ModelPlan, Plan

__all__ = ["Alternative", "list_alternatives"]

_GPUS_PER_NODE = 8
_NODES = 64
"""Size of the pool that another GPU is tried on: as large as any replica needs."""
_DATA_SIZES = (2, 4, 8, 16)
_NAME_PARTS = re.compile(r"^meta-|-(?:fp8-dynamic|fp8|awq-int4|awq|gptq-int4|gptq|w8a8|w4a16|int8|int4|nvfp4|bf16)$")


def list_alternatives(planned: Plan) -> dict[str, list[Alternative]]:
    """Return the alternatives of each model with a known price, the largest saving first."""
    plan, facts, source = leave_out_blocked_shares(planned), planned.facts, planned.source
    inventories = build_inventories(source.fleet, source.measured, facts)
    found: dict[str, list[Alternative]] = {}
    specs = plan.resolved.models
    model_specs = {each.name: each for each in specs if not each.declared.pools}
    shared = list_sharing(model_specs, plan, inventories, facts)
    for model_spec in model_specs.values():
        now = plan.models[model_spec.name]
        if now.price_per_hour is None:
            continue
        search = _Search(model_spec, now, plan, inventories, facts)
        every = [*search.list_all(), *shared.get(model_spec.name, ())]
        listed = sorted(confirm(planned, model_spec.name, every), key=_get_order)
        if listed:
            found[model_spec.name] = listed
    return found


def _get_order(each: Alternative) -> tuple[bool, float, str]:
    return each.saving_per_hour is None, -(each.saving_per_hour or 0.0), each.what


class _Search:
    def __init__(
        self,
        model_spec: ResolvedModelSpec,
        now: ModelPlan,
        plan: Plan,
        inventories: Mapping[str, PoolInventory],
        facts: Catalog,
    ) -> None:
        self._written: Mapping[str, Any] = plan.source.data["models"][model_spec.name]
        """The model in the fleet file."""
        self._pools = frozenset(plan.declared.pools)
        self._spec, self._now, self._plan, self._facts = model_spec, now, plan, facts
        self._inventories = {name: pool for name, pool in inventories.items() if pool.pool.cluster == now.cluster}

    def list_all(self) -> Iterator[Alternative]:
        yield from self._list_checkpoints()
        yield from self._list_gpus()
        yield from self._list_pinned_away()
        yield from self._list_over_hosts()
        yield from self._list_data_ranks()
        yield from self._list_roles()
        yield from list_pools(self._spec, self._now, self._plan, self._inventories)
        yield from self._list_spare_replica()

    def _list_checkpoints(self) -> Iterator[Alternative]:
        """Yield the cheapest smaller checkpoint of the same model."""
        size = count_weights(self._spec.model).bytes
        for model in self._facts.models():
            if count_weights(model).bytes < size and _is_same_model(model, self._spec.model):
                declared = self._spec.declared.model_copy(update={"source": model.id, "revision": None})
                best = self._find_best(replace(self._spec, model=model, declared=declared))
                others = self._list_copies()
                note = "another checkpoint of the same model: check the quality of its answers"
                if others:
                    note += f"; also of {' and '.join(f'`{name}`' for name in others)} with the same served name"
                removed = dict.fromkeys(key for key in ("revision", "architecture") if key in self._written)
                change = {**removed, "source": model.id}
                yield from self._compare(
                    "checkpoint", f"source: {model.id}", best, note, change=change, others=dict.fromkeys(others, change)
                )

    def _list_copies(self) -> list[str]:
        """Return the models that serve the same name and version, so that they need the same weights."""
        now = self._now
        return [
            name
            for name, each in self._plan.models.items()
            if name != now.model and (each.served_as, each.version) == (now.served_as, now.version)
        ]

    def _list_gpus(self) -> Iterator[Alternative]:
        """Yield the cheapest GPU that no pool has, at its price in the catalog."""
        there = {host.gpu.of or host.gpu.id for pool in self._inventories.values() for host in pool.hosts}
        pools = {
            gpu.id: _build_pool(gpu)
            for gpu in self._facts.gpus()
            if gpu.id not in there and gpu.engine == "vllm" and gpu.price.on_demand is not None
        }
        spec = self._with(pool=None)
        options = ModelOptions(spec, PoolSplits(pools), None)
        best = find_cheapest(options, lambda candidate: True)
        if best is None:
            return
        note = "on demand, at the price of the catalog; a pool with it has to be added"
        name, pool = self._write_pool(best)
        keys = ", ".join(f"{key}: {value}" for key, value in pool.items() if key != "cluster")
        change = {"pool": name, "parallelism": pin_split(self._written, best)}
        yield from self._compare(
            "gpu", f"pools.{name}: {{{keys}}}", best, note, is_new_pool=True, change=change, pools={name: pool}
        )

    def _write_pool(self, best: Candidate) -> tuple[str, dict[str, Any]]:
        """Return a new pool with the GPUs of a candidate, each replica on a node."""
        name = best.split.gpu.id.lower()
        while name in self._pools:
            name += "-2"
        pool: dict[str, Any] = {"gpu": best.split.gpu.id, "nodes": best.replicas}
        if best.split.gpus_per_node > 1:
            pool["gpusPerNode"] = best.split.gpus_per_node
        return name, pool | ({"cluster": self._now.cluster} if self._now.cluster != "main" else {})

    def _list_pinned_away(self) -> Iterator[Alternative]:
        """Yield the cheapest shape on a pool of the fleet that the pins of the model exclude."""
        declared = self._spec.declared
        if declared.pool is None and declared.parallelism is None:
            return
        best = self._find_best(self._with(pool=None, parallelism=None))
        if best is None:
            return
        change: dict[str, Any] = {}
        if best.split.inventory.name != self._now.pool:
            change["pool"] = best.split.inventory.name
        if declared.parallelism is not None:
            change["parallelism"] = pin_split(self._written, best)
        yield from self._compare("pool", _describe(change), best, "instead of what the fleet file pins", change=change)

    def _list_over_hosts(self) -> Iterator[Alternative]:
        """Yield the cheapest pipeline over more hosts than the planned one. A person decides on it: a replica is lost
        with each of its hosts."""
        if self._spec.declared.parallelism is not None or self._now.prefill_decode or self._now.gpu_fraction < 1:
            return
        options = ModelOptions(self._spec, PoolSplits(self._inventories), None)
        fewest = self._now.nodes_per_replica
        best = find_cheapest(options, lambda each: each.split.nodes > fewest and self._has_room(each))
        if best is None:
            return
        change = {"pool": best.split.inventory.name, "parallelism": pin_split(self._written, best)}
        note = (
            f"{best.split.nodes} hosts for each replica: the loss of one stops all of it, and no measurement confirms"
            " the speed of a pipeline over hosts"
        )
        yield from self._compare("hosts", _describe(change), best, note, change=change)

    def _list_data_ranks(self) -> Iterator[Alternative]:
        """Yield the cheapest data parallel ranks that share experts, for latent attention (MLA): each tensor parallel
        rank holds the whole KV cache, a data parallel rank that of its own requests."""
        declared, now = self._spec.declared, self._now
        if not self._spec.model.attention.mla or declared.parallelism is not None or now.prefill_decode:
            return
        if declared.scaling == "engine-queue" or declared.adapters or now.aliases:
            return  # the fleet file would be refused
        most = max((host.gpu_count for pool in self._inventories.values() for host in pool.hosts), default=1)
        sizes = [size for size in _DATA_SIZES if size <= most]
        tried = (self._find_best(self._with(pool=declared.pool, parallelism=Parallelism(data=size))) for size in sizes)
        best = min(filter(None, tried), key=lambda each: rank(each, by_price=True), default=None)
        if best is None:
            return
        change = {"pool": best.split.inventory.name, "parallelism": pin_split(self._written, best)}
        note = (
            "each rank holds the KV cache of its own requests; with tensor parallelism each holds that of all requests,"
            " because latent attention (MLA) is not divided"
        )
        if best.capacity.basis == "model":
            note += "; no measurement confirms the speed"
        yield from self._compare("data parallel", _describe(change), best, note, change=change)

    def _list_roles(self) -> Iterator[Alternative]:
        """Yield prompts and answers on different replicas, where rayhelm serves them so. Only as an alternative: no
        measured row of such replicas was found, and the measured rows that correct the plan do not correct this."""
        declared, now = self._spec.declared, self._now
        if now.prefill_decode or now.data_parallel_size > 1 or now.gpu_fraction < 1 or declared.served_as:
            return
        is_served = declared.task in SERVED_TASKS and declared.scaling != "engine-queue" and declared.traffic
        if not is_served or declared.replicas is not None or declared.adapters or self._spec.has_own_engine:
            return
        if now.aliases or not self._inventories[now.pool].pool.rdma_resource:
            return  # the fleet file would be refused
        pin = Parallelism(prefill_decode=True)
        best = self._find_best(self._with(pool=now.pool, parallelism=pin))
        if best is None:
            return
        split = {"tensor": best.split.shape.tp, "prefillDecode": True}
        change = {"pool": now.pool, "parallelism": dict.fromkeys(self._written.get("parallelism") or {}) | split}
        note = "prompts and answers on different GPUs; the estimate was compared with no measurement of such replicas"
        yield from self._compare("prefill/decode", _describe({"parallelism": split}), best, note, change=change)

    def _list_spare_replica(self) -> Iterator[Alternative]:
        """Yield one replica more at the same split: the load still fits when one is lost."""
        if self._spec.declared.replicas is not None or self._now.prefill_decode:
            return
        now, shape, count = self._now, self._now.shape, self._now.replicas + 1
        expert = shape.has_expert_parallel or None
        pin = Parallelism(tensor=shape.tp, pipeline=shape.pp, expert=expert, data=shape.dp)
        best = self._find_best(self._with(replicas=count, pool=now.pool, parallelism=pin))
        if best is None:
            return
        change: dict[str, Any] = {"replicas": count}
        alone = self._find_best(self._with(replicas=count))
        where = (now.pool, shape.tp, shape.pp)
        if alone is None or (alone.split.inventory.name, alone.split.shape.tp, alone.split.shape.pp) != where:
            change |= {"pool": now.pool, "parallelism": pin_split(self._written, best)}
        note = "N+1: the load still fits when a replica or its node is lost"
        yield from self._compare("spare replica", _describe(change), best, note, is_any_price=True, change=change)

    def _with(self, **update: object) -> ResolvedModelSpec:
        return replace(self._spec, declared=self._spec.declared.model_copy(update=update))

    def _find_best(self, spec: ResolvedModelSpec) -> Candidate | None:
        options = ModelOptions(spec, PoolSplits(self._inventories), None)
        return find_cheapest(options, self._has_room)

    def _has_room(self, candidate: Candidate) -> bool:
        """Return whether the pool has enough GPUs that no other model uses."""
        pool = self._plan.pools[candidate.split.inventory.name]
        own = self._now.gpus if self._now.pool == candidate.split.inventory.name else 0.0
        return candidate.gpus <= pool.gpus - pool.used + own + 1e-6

    def _compare(
        self,
        kind: Kind,
        what: str,
        best: Candidate | None,
        note: str = "",
        *,
        is_new_pool: bool = False,
        is_any_price: bool = False,
        change: Mapping[str, Any],
        pools: Mapping[str, Any] | None = None,
        others: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Iterator[Alternative]:
        price, now = best.price_per_hour if best else None, self._now.price_per_hour
        if best is None or price is None or now is None:
            return
        if not is_any_price and now - price <= LEAST_SAVING * now:
            return
        yield Alternative(
            kind=kind,
            what=what,
            change={"models": {**(others or {}), self._spec.name: dict(change)}}
            | ({"pools": dict(pools)} if pools else {}),
            pool="" if is_new_pool else best.split.inventory.name,
            gpu=best.split.gpu_name,
            gpus=round(best.gpus, 4),
            tensor_parallel_size=best.split.shape.tp,
            pipeline_parallel_size=best.split.shape.pp,
            data_parallel_size=best.split.shape.dp,
            replicas=best.replicas,
            price_per_hour=round(price, 4),
            saving_per_hour=round(now - price, 4),
            ttft_s=best.capacity.ttft_s,
            tpot_s=best.capacity.tpot_s,
            note=note,
        )


def _describe(change: Mapping[str, Any]) -> str:
    """Return keys of a model as text, without those that are removed."""
    parts = []
    for key, value in change.items():
        if isinstance(value, Mapping):
            value = "{" + _describe(value) + "}"
        if value is not None:
            parts.append(f"{key}: {str(value).lower() if isinstance(value, bool) else value}")
    return ", ".join(parts)


def _build_pool(gpu: GpuKind) -> PoolInventory:
    pool = Pool(gpu=gpu.id, nodes=_NODES, gpus_per_node=_GPUS_PER_NODE, network="internet")
    hosts = [HostInventory(f"{gpu.id}-{index}", gpu, _GPUS_PER_NODE) for index in range(_NODES)]
    network = PoolNetwork("internet", None, rdma=False, spans_hosts=False)
    return PoolInventory(gpu.id, pool, hosts, network, gpu.price.on_demand, gpu.price.on_demand_source)


def _is_same_model(one: Checkpoint, other: Checkpoint) -> bool:
    """Return whether two checkpoints are one model in different formats: by their names, and by their layers."""
    shapes = [(model.layers, model.hidden, model.intermediate, model.vocab) for model in (one, other)]
    return shapes[0] == shapes[1] and _strip(one.id) == _strip(other.id)


def _strip(name: str) -> str:
    """Return the name without its owner and its format."""
    plain = name.rpartition("/")[2].lower()
    while (shorter := _NAME_PARTS.sub("", plain)) != plain:
        plain = shorter
    return plain
