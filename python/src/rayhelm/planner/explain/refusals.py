"""Says why a model has no place, and what would give it one, in the words of the fleet file."""

import re
from collections.abc import Sequence
from math import floor

from rayhelm.catalog import Catalog
from rayhelm.errors import Problem
from rayhelm.planner.memory.fit import fit
from rayhelm.planner.memory.parallelism import objections, valid_tensor_parallel_sizes
from rayhelm.planner.placement.allocate import room_for
from rayhelm.planner.placement.candidates import Candidate, Refusal
from rayhelm.planner.placement.inventory import PoolSite
from rayhelm.planner.placement.model_spec import Wish
from rayhelm.planner.placement.model_splits import Split, stages_of
from rayhelm.spec.load import LoadedFleet

__all__ = ["nothing_fits", "too_little_room"]

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


def nothing_fits(
    wish: Wish, pools: Sequence[PoolSite], refused: Sequence[Refusal], loaded: LoadedFleet, known: Catalog
) -> Problem:
    """No split of any pool holds the model."""
    path = _path(wish)
    if not refused:
        return loaded.document.problem(path, *_no_split(wish, pools))
    nearest = min(refused, key=_nearness)
    where = "; ".join(f"{name}: {why}" for name, why in _best_of_each_pool(refused).items())
    message = f"`{wish.name}` ({wish.model.id}) fits nowhere. {where}"
    return loaded.document.problem(path, message, "\n".join(_fixes(wish, nearest.split, known)))


def too_little_room(wish: Wish, found: Sequence[Candidate], loaded: LoadedFleet) -> Problem:
    """It would fit, but other models hold the cards, or the load needs more replicas than there are cards for."""
    best = max(found, key=lambda candidate: (candidate.capacity.meets_slo, room_for(candidate) / candidate.replicas))
    pool, there = best.split.pool, room_for(best)
    count = "1 replica" if best.replicas == 1 else f"{best.replicas} replicas"
    needs = f"{count} of {best.split.cards * best.share:g} {best.split.gpu_name}"
    why = "" if wish.spec.replicas is not None else " at the planned load"
    taken = f"{pool.used:g} of {pool.cards} cards are taken by models before it"
    message = f"`{wish.name}` needs {needs}{why}, and pool `{pool.name}` has room for {there} ({taken})"
    return loaded.document.problem(("models", wish.name), message, "\n".join(_ways_to_room(wish, best, there)))


def _ways_to_room(wish: Wish, best: Candidate, there: int) -> list[str]:
    pool = best.split.pool
    fixes = [f"add {_more_hosts(best, there)} to pool `{pool.name}`"]
    if best.share < 1 and any(owner != wish.service for owner in pool.idle_shares):
        other = next(owner for owner in pool.idle_shares if owner != wish.service)
        fixes.append(f"or share a card: services do not, models of one service do:  service: {other}")
    if wish.spec.traffic and there and wish.spec.replicas is None:
        rate = wish.spec.traffic.requests_per_second * there / best.replicas
        fixes.append(f"or plan for what fits:  requestsPerSecond: {rate:.3g}")
        fixes.append(f"or pin the replicas, and let requests wait:  replicas: {there}")
    return fixes


def _fixes(wish: Wish, split: Split, known: Catalog) -> list[str]:
    pin = wish.spec.parallelism
    if pin and pin.tensor and objections(wish.model, split.tp, 1, wish.engine):
        return [_nearest_split(wish, split, pin.tensor)]
    if wish.own_engine and split.gpu.memory_seen < 1:
        return ["pool: …   # one of whole cards, or whose `sharing` has `isolation: hardware`"]
    if wish.utilization(1.0, split.gpu.memory_seen) > split.gpu.memory_seen:
        return [f"engine: {{gpu_memory_utilization: {floor(split.gpu.memory_seen * 90) / 100:g}}}   # or leave it out"]
    told = fit(
        wish.model,
        split.gpus,
        split.tp,
        split.pp,
        gpu_memory_utilization=wish.utilization(wish.spec.gpu_fraction or 1.0, split.gpu.memory_seen)
        / split.gpu.memory_seen,
        max_model_len=wish.context,
        max_num_seqs=wish.pinned_int("max_num_seqs"),
        max_num_batched_tokens=wish.pinned_int("max_num_batched_tokens"),
        enforce_eager=bool(wish.spec.engine.get("enforce_eager")),
        catalog=known,
    )
    larger = ["a larger gpuFraction, or none"] if wish.spec.gpu_fraction and wish.spec.gpu_fraction < 1 else []
    return larger + [_in_fleet_words(fix) for fix in told.fixes]


def _nearest_split(wish: Wish, split: Split, asked: int) -> str:
    """The split nearest to the asked one that vLLM takes and a host has the cards for."""
    most = max(host.cards for host in split.pool.hosts)
    sizes = sorted(valid_tensor_parallel_sizes(wish.model, wish.engine, most), key=lambda tp: (abs(tp - asked), -tp))
    others = ", ".join(map(str, sorted(sizes[1:])))
    return f"parallelism: {{tensor: {sizes[0]}}}" + (f"   # or {others}" if others else "")


def _in_fleet_words(fix: str) -> str:
    for pattern, words in _FLEET_WORDS:
        if pattern.match(fix):
            return pattern.sub(words, fix)
    return fix


def _no_split(wish: Wish, pools: Sequence[PoolSite]) -> tuple[str, str]:
    """Not one split could be tried: the pins ask for more cards or hosts than any pool has."""
    pin = wish.spec.parallelism
    asked = f"TP {pin.tensor or 'any'} x PP {stages_of(pin) or 'any'}" if pin else "any split"
    if not pools:
        why = "no pool is on the cluster of its service, or of what answers to the same name"
        return f"`{wish.name}`: {why}", "pin another `pool`, or another `service`"
    have = "; ".join(
        f"`{site.name}` has {len(site.hosts)} hosts of {max(host.cards for host in site.hosts)} cards on {site.link}"
        for site in pools
    )
    most = max(max(host.cards for host in site.hosts) for site in pools)
    fix = f"remove `parallelism`, or stay within the pool:  parallelism: {{tensor: {most}}}"
    return f"`{wish.name}`: no pool has the hosts for {asked}: {have}", fix


def _best_of_each_pool(refused: Sequence[Refusal]) -> dict[str, str]:
    best: dict[str, Refusal] = {}
    for refusal in refused:
        name = refusal.split.pool.name
        if name not in best or _nearness(refusal) < _nearness(best[name]):
            best[name] = refusal
    return {
        name: f"{refusal.split.gpu_name} at TP {refusal.split.tp} x PP {refusal.split.pp}: {refusal.why}"
        for name, refusal in best.items()
    }


def _nearness(refusal: Refusal) -> tuple[bool, float]:
    return (refusal.short_gib == 0, refusal.short_gib)


def _more_hosts(best: Candidate, there: int) -> str:
    """Nodes like those of the pool that would hold the rest."""
    missing, split = best.replicas - there, best.split
    cards = max(host.cards for host in split.sites) if split.pool.cut else max(host.cards for host in split.pool.hosts)
    per_host = max(1, int(1 / best.share + 1e-9)) * cards if best.share < 1 else cards // split.cards_per_node
    nodes = missing * split.nodes if split.nodes > 1 or split.hosts else -(-missing // max(1, per_host))
    return f"{nodes} node{'s' if nodes > 1 else ''}"


def _path(wish: Wish) -> tuple[str | int, ...]:
    if wish.spec.parallelism:
        return ("models", wish.name, "parallelism")
    return ("models", wish.name, "pool") if wish.spec.pool else ("models", wish.name)
