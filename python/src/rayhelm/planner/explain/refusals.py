"""Says why a model has no place, and what would give it one, in the words of the fleet file."""

import re
from collections.abc import Sequence
from math import floor

from rayhelm.catalog import Catalog
from rayhelm.errors import Problem
from rayhelm.planner.memory.fit import fit
from rayhelm.planner.memory.parallelism import list_split_errors, list_tensor_parallel_sizes
from rayhelm.planner.placement.allocate import count_possible_replicas
from rayhelm.planner.placement.candidates import Candidate, RejectedSplit
from rayhelm.planner.placement.inventory import PoolInventory
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.placement.model_splits import ModelSplit, count_pinned_stages
from rayhelm.spec.load import LoadedFleet

__all__ = ["report_no_fit", "report_no_room"]

_CARDS = r"(?: \((.*)\))?$"
_FLEET_WORDS = (
    (re.compile(r"^max_model_len: (\d+)$"), r"context: \1"),
    (
        re.compile(r"^tensor_parallel_size: (\d+) and pipeline_parallel_size: (\d+)" + _CARDS),
        r"parallelism: {tensor: \1, pipeline: \2}   # \3, \1 in a host",
    ),
    (re.compile(r"^tensor_parallel_size: (\d+) \((.*)\)$"), r"parallelism: {tensor: \1}   # \2 in one host"),
    (re.compile(r"^pipeline_parallel_size: (\d+) \((.*)\)$"), r"parallelism: {pipeline: \1}   # \2"),
    (re.compile(r"^layers: (\[[\d, ]+\]).*"), r"parallelism: {layers: \1}"),
    (re.compile(r"^(max_num_seqs|kv_cache_dtype|enforce_eager): (\w+),? ?(.*)$"), r"engine: {\1: \2}   # \3"),
    (re.compile(r"^source: (\S+) \((.*)\)$"), r"source: \1   # \2"),
    (re.compile(r"^gpu: "), "a pool of "),
)
"""What `fit` proposes in vLLM's words, and how the fleet file says it."""


def report_no_fit(
    model_spec: ResolvedModelSpec,
    pools: Sequence[PoolInventory],
    refused: Sequence[RejectedSplit],
    loaded: LoadedFleet,
    known: Catalog,
) -> Problem:
    """No split of any pool holds the model."""
    path = _path(model_spec)
    if not refused:
        return loaded.document.problem(path, *_no_split(model_spec, pools))
    nearest = min(refused, key=_nearness)
    where = "; ".join(f"{name}: {why}" for name, why in _best_of_each_pool(refused).items())
    message = f"`{model_spec.name}` ({model_spec.model.id}) fits nowhere. {where}"
    return loaded.document.problem(path, message, "\n".join(_fixes(model_spec, nearest.split, known)))


def report_no_room(model_spec: ResolvedModelSpec, found: Sequence[Candidate], loaded: LoadedFleet) -> Problem:
    """It would fit, but other models hold the cards, or the load needs more replicas than there are cards for."""
    best = max(
        found,
        key=lambda candidate: (candidate.capacity.meets_slo, count_possible_replicas(candidate) / candidate.replicas),
    )
    pool, there = best.split.inventory, count_possible_replicas(best)
    count = "1 replica" if best.replicas == 1 else f"{best.replicas} replicas"
    needs = f"{count} of {best.split.gpu_count * best.share:g} {best.split.gpu_name}"
    why = "" if model_spec.declared.replicas is not None else " at the planned load"
    taken = f"{pool.used:g} of {pool.gpu_count} cards are taken by models before it"
    message = f"`{model_spec.name}` needs {needs}{why}, and pool `{pool.name}` has room for {there} ({taken})"
    return loaded.document.problem(
        ("models", model_spec.name), message, "\n".join(_ways_to_room(model_spec, best, there))
    )


def _ways_to_room(model_spec: ResolvedModelSpec, best: Candidate, there: int) -> list[str]:
    pool = best.split.inventory
    fixes = [f"add {_more_hosts(best, there)} to pool `{pool.name}`"]
    if best.share < 1 and any(owner != model_spec.service for owner in pool.idle_shares):
        other = next(owner for owner in pool.idle_shares if owner != model_spec.service)
        fixes.append(f"or share a card: services do not, models of one service do:  service: {other}")
    if model_spec.declared.traffic and there and model_spec.declared.replicas is None:
        rate = model_spec.declared.traffic.requests_per_second * there / best.replicas
        fixes.append(f"or plan for what fits:  requestsPerSecond: {rate:.3g}")
        fixes.append(f"or pin the replicas, and let requests wait:  replicas: {there}")
    return fixes


def _fixes(model_spec: ResolvedModelSpec, split: ModelSplit, known: Catalog) -> list[str]:
    pin = model_spec.declared.parallelism
    if pin and pin.tensor and list_split_errors(model_spec.model, split.tp, 1, model_spec.engine):
        return [_nearest_split(model_spec, split, pin.tensor)]
    if model_spec.has_own_engine and split.gpu.memory_seen < 1:
        return ["pool: …   # one of whole cards, or whose `sharing` has `isolation: hardware`"]
    if model_spec.utilization(1.0, split.gpu.memory_seen) > split.gpu.memory_seen:
        return [f"engine: {{gpu_memory_utilization: {floor(split.gpu.memory_seen * 90) / 100:g}}}   # or leave it out"]
    told = fit(
        model_spec.model,
        split.gpus,
        split.tp,
        split.pp,
        gpu_memory_utilization=model_spec.utilization(model_spec.declared.gpu_fraction or 1.0, split.gpu.memory_seen)
        / split.gpu.memory_seen,
        max_model_len=model_spec.context,
        max_num_seqs=model_spec.pinned_int("max_num_seqs"),
        max_num_batched_tokens=model_spec.pinned_int("max_num_batched_tokens"),
        enforce_eager=bool(model_spec.declared.engine.get("enforce_eager")),
        catalog=known,
    )
    larger = (
        ["a larger gpuFraction, or none"]
        if model_spec.declared.gpu_fraction and model_spec.declared.gpu_fraction < 1
        else []
    )
    return larger + [_in_fleet_words(fix) for fix in told.fixes]


def _nearest_split(model_spec: ResolvedModelSpec, split: ModelSplit, asked: int) -> str:
    """The split nearest to the asked one that vLLM takes and a host has the cards for."""
    most = max(host.gpu_count for host in split.inventory.hosts)
    sizes = sorted(
        list_tensor_parallel_sizes(model_spec.model, model_spec.engine, most), key=lambda tp: (abs(tp - asked), -tp)
    )
    others = ", ".join(map(str, sorted(sizes[1:])))
    return f"parallelism: {{tensor: {sizes[0]}}}" + (f"   # or {others}" if others else "")


def _in_fleet_words(fix: str) -> str:
    for pattern, words in _FLEET_WORDS:
        if pattern.match(fix):
            return pattern.sub(words, fix)
    return fix


def _no_split(model_spec: ResolvedModelSpec, pools: Sequence[PoolInventory]) -> tuple[str, str]:
    """Not one split could be tried: the pins ask for more cards or hosts than any pool has."""
    pin = model_spec.declared.parallelism
    asked = f"TP {pin.tensor or 'any'} x PP {count_pinned_stages(pin) or 'any'}" if pin else "any split"
    if not pools:
        why = "no pool is on the cluster of its service, or of what answers to the same name"
        return f"`{model_spec.name}`: {why}", "pin another `pool`, or another `service`"
    have = "; ".join(
        f"`{pool.name}` has {len(pool.hosts)} hosts of {_largest_host(pool)} GPUs on {pool.network}" for pool in pools
    )
    most = max(_largest_host(pool) for pool in pools)
    fix = f"remove `parallelism`, or stay within the pool:  parallelism: {{tensor: {most}}}"
    return f"`{model_spec.name}`: no pool has the hosts for {asked}: {have}", fix


def _largest_host(pool: PoolInventory) -> int:
    """GPUs of the host that has most."""
    return max(host.gpu_count for host in pool.hosts)


def _best_of_each_pool(refused: Sequence[RejectedSplit]) -> dict[str, str]:
    best: dict[str, RejectedSplit] = {}
    for refusal in refused:
        name = refusal.split.inventory.name
        if name not in best or _nearness(refusal) < _nearness(best[name]):
            best[name] = refusal
    return {
        name: f"{refusal.split.gpu_name} at TP {refusal.split.tp} x PP {refusal.split.pp}: {refusal.why}"
        for name, refusal in best.items()
    }


def _nearness(refusal: RejectedSplit) -> tuple[bool, float]:
    return (refusal.short_gib == 0, refusal.short_gib)


def _more_hosts(best: Candidate, there: int) -> str:
    """Nodes like those of the pool that would hold the rest."""
    missing, split = best.replicas - there, best.split
    gpus = (
        max(host.gpu_count for host in split.matching_hosts)
        if split.inventory.partitioning
        else max(host.gpu_count for host in split.inventory.hosts)
    )
    per_host = max(1, int(1 / best.share + 1e-9)) * gpus if best.share < 1 else gpus // split.gpus_per_node
    nodes = missing * split.nodes if split.nodes > 1 or split.hosts else -(-missing // max(1, per_host))
    return f"{nodes} node{'s' if nodes > 1 else ''}"


def _path(model_spec: ResolvedModelSpec) -> tuple[str | int, ...]:
    if model_spec.declared.parallelism:
        return ("models", model_spec.name, "parallelism")
    return ("models", model_spec.name, "pool") if model_spec.declared.pool else ("models", model_spec.name)
