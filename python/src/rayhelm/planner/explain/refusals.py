"""Problems of models that cannot be placed, each with fixes as keys of the fleet file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import floor, inf

from rayhelm.errors import Fix, Problem, Rewrite
from rayhelm.facts import Catalog
from rayhelm.fleet.models import Parallelism
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.explain.more_nodes import Shortage, add_nodes, find_largest_host
from rayhelm.planner.explain.several_pools import advise_several_pools
from rayhelm.planner.explain.sharing_fixes import list_larger_parts
from rayhelm.planner.memory.fit import Fit, fit
from rayhelm.planner.memory.fit_fixes import LEAST_CONTEXT, FitFix
from rayhelm.planner.memory.parallelism import list_split_errors, list_tensor_parallel_sizes
from rayhelm.planner.memory.quantization import find_dtype_error
from rayhelm.planner.placement.allocate import count_possible_replicas
from rayhelm.planner.placement.candidates import Candidate, RejectedSplit
from rayhelm.planner.placement.inventory import PoolInventory
from rayhelm.planner.placement.kv_transfer import find_transfer_error
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.placement.model_splits import ModelSplit, count_pinned_stages
from rayhelm.planner.placement.resolve import find_longest_context
from rayhelm.planner.shape import ReplicaShape, write_parallelism

__all__ = ["report_no_fit", "report_no_room"]

_FLEET_KEYS: Mapping[str, tuple[str, str]] = {
    "max_model_len": ("context", ""),
    "tensor_parallel_size": ("parallelism", "tensor"),
    "pipeline_parallel_size": ("parallelism", "pipeline"),
    "layers": ("parallelism", "layers"),
    "enable_expert_parallel": ("parallelism", "expert"),
    "max_num_seqs": ("engine", "max_num_seqs"),
    "kv_cache_dtype": ("engine", "kv_cache_dtype"),
    "enforce_eager": ("engine", "enforce_eager"),
    "decode_context_parallel_size": ("engine", "decode_context_parallel_size"),
    "source": ("source", ""),
}
"""Where a setting of `fit` is written in a model of the fleet file: key, and key below it."""
_MORE_GPUS = frozenset({"tensor_parallel_size", "pipeline_parallel_size"})


def report_no_fit(
    model_spec: ResolvedModelSpec,
    pools: Sequence[PoolInventory],
    rejected: Sequence[RejectedSplit],
    facts: Catalog,
) -> Problem:
    """Return the problem of a model that fits no pool, with the reason of each pool and what would fit."""
    path = _find_path(model_spec)
    if not rejected:
        return _report_no_split(model_spec, pools, path)
    if model_spec.separates_prefill:
        rejected = [each for each in rejected if not each.short_gib] or rejected
    if model_spec.gpus_below < inf:
        return problem_at(path, f"model `{model_spec.name}` needs more GPUs for a replica than `replicas.max` leaves")
    nearest = min(rejected, key=_measure_distance)
    reasons = "; ".join(f"pool `{name}`: {why}" for name, why in _find_best_of_each_pool(rejected).items())
    name = model_spec.written
    where = "does not fit in one of its `pools`" if model_spec.declared.pools else "fits in no pool"
    message = f"model `{name}` ({model_spec.model.id}) {where}. {reasons}"
    first, *others = _list_split_fixes(model_spec, nearest.split, facts)
    return problem_at(path, message, first, alternatives=others)


def report_no_room(model_spec: ResolvedModelSpec, found: Sequence[Candidate]) -> Shortage:
    """Return the problem of a model that would fit, but has too few free GPUs left for its replicas."""
    best = max(
        found,
        key=lambda candidate: (candidate.capacity.meets_slo, count_possible_replicas(candidate) / candidate.replicas),
    )
    pool, possible = best.split.inventory, count_possible_replicas(best)
    pin = model_spec.declared.parallelism
    replicas = "1 replica" if best.replicas == 1 else f"{best.replicas} replicas"
    is_pinned = model_spec.declared.replicas is not None or (pin and pin.prefill)
    load = "" if is_pinned else " for the planned load"
    name = model_spec.written
    message = (
        f"model `{name}` needs {replicas} with {best.split.shape.gpu_count * best.share:g} {best.split.gpu_name}"
        f" each{load}. Pool `{pool.name}` has room for {possible}: models placed before it use {pool.used:g} of"
        f" {pool.gpu_count} GPUs"
    )
    first, *others = [*advise_several_pools(model_spec, found), *_list_capacity_fixes(model_spec, best, possible)]
    problem = problem_at(model_spec.path, message, first, alternatives=others)
    return Shortage(problem, best, best.replicas - possible)


def _list_capacity_fixes(model_spec: ResolvedModelSpec, best: Candidate, possible: int) -> Iterator[Fix]:
    pool = best.split.inventory
    yield add_nodes(best, best.replicas - possible)
    others = [owner for owner in pool.idle_shares if owner != model_spec.service]
    if best.share < 1 and others:
        yield Fix("service", others[0], "models of one service can share a GPU, services cannot")
    traffic = model_spec.declared.traffic
    possible -= best.capacity.spare
    if traffic and possible > 0 and model_spec.declared.replicas is None and not best.capacity.roles:
        rate = traffic.find_rate(traffic.peak_rate * possible / best.capacity.needed)
        yield Fix("traffic.requestsPerSecond", float(f"{rate:.3g}"), "the load that fits")
        yield Fix("replicas", possible, "requests will queue at the planned load")


def _list_split_fixes(model_spec: ResolvedModelSpec, split: ModelSplit, facts: Catalog) -> list[Fix]:
    """Return the fixes, at least one. Paths are relative to the path of the problem."""
    root = f"/models.{model_spec.written}"
    pin, seen = model_spec.declared.parallelism, split.gpu.memory_seen
    if model_spec.separates_prefill and find_transfer_error(model_spec, split):
        keys = {"tensor": split.shape.tp} if pin and pin.tensor else {}
        why = "each replica then computes prompts and answers"
        together = Fix(f"{root}.parallelism", keys, why) if keys else Fix.removal(f"{root}.parallelism", why)
        return [*_remove_pipeline(model_spec, split, root), together]
    if pin and (pin.expert or split.shape.dp > 1) and _is_refused(model_spec, split.shape):
        return [_find_expert_split(model_spec, split, root)]
    if pin and pin.tensor and _is_refused(model_spec, ReplicaShape(split.shape.tp)):
        return [_find_nearest_split(model_spec, split, pin.tensor, root)]
    if model_spec.has_own_engine and seen < 1:
        path = f"/pools.{split.inventory.name}.sharing.isolation"
        return [Fix(path, "hardware", "or another pool, with whole GPUs")]
    if not model_spec.has_own_engine and find_dtype_error(model_spec.declared.engine.get("dtype"), split.gpus):
        return [Fix(f"{root}.engine.dtype", "half", "float16, with the same memory")]
    if model_spec.utilization(1.0, seen) > seen:
        return [Fix(f"{root}.engine", {"gpu_memory_utilization": floor(seen * 90) / 100}, "or leave it out")]
    share = model_spec.declared.gpu_fraction or 1.0
    found = _order_fixes(_fit_share(share, model_spec, split, facts), split)
    found = _lengthen_context(found, model_spec, split, share)
    if share == 1:
        return [*list_larger_parts(model_spec, split, facts), *(_convert(fix, split, model_spec) for fix in found)]
    # A part of a GPU is never split over several, so these fixes need the whole one.
    kept = [fix for fix in found if not _MORE_GPUS & fix.settings.keys()]
    fixes = [_convert(fix, split, model_spec) for fix in kept]
    whole = _fit_share(1.0, model_spec, split, facts)
    if whole.fits:
        return [Fix(f"{root}.gpuFraction", 1.0, "the whole GPU, or a larger part of it"), *fixes]
    more = [_convert(fix, split, model_spec) for fix in _order_fixes(whole, split) if fix not in kept]
    return [*fixes, *(replace(fix, replaces=None if fix.command else f"{root}.gpuFraction") for fix in more)]


def _order_fixes(answer: Fit, split: ModelSplit) -> list[FitFix]:
    """Return the fixes of `fit`, those first that need no more GPUs than the pool has.

    No replica is split over parts of GPUs: a whole GPU comes before another checkpoint."""
    if split.inventory.partitioning and (
        single := [fix for fix in answer.fixes if not _MORE_GPUS & fix.settings.keys()]
    ):
        return sorted(single, key=lambda found: "source" in found.settings)
    return sorted(answer.fixes, key=lambda found: bool(_describe_missing_gpus(found, split)))


def _lengthen_context(
    fixes: Sequence[FitFix], model_spec: ResolvedModelSpec, split: ModelSplit, share: float
) -> list[FitFix]:
    """Return the fixes with the longest context that fits by any settings that the planner chooses itself."""
    longest = find_longest_context(model_spec, split, share)
    shorter = [int(str(context)) for fix in fixes if (context := fix.settings.get("max_model_len"))]
    if longest is None or longest.config.cache is None:
        return list(fixes)
    if not LEAST_CONTEXT <= longest.config.context < model_spec.context:  # else it is not the memory that is missing
        return list(fixes)
    why = "the longest that fits"
    if longest.config.eager and "enforce_eager" not in model_spec.declared.engine:
        why += ", without CUDA graphs" + (f"; with them {shorter[0]}" if shorter else "")
    found = FitFix(settings={"max_model_len": longest.config.context}, why=why)
    return [found, *(fix for fix in fixes if "max_model_len" not in fix.settings)]


def _fit_share(share: float, model_spec: ResolvedModelSpec, split: ModelSplit, facts: Catalog) -> Fit:
    """Return the memory of a split with this share of each GPU."""
    return fit(model_spec.model, split.gpus, split.shape, model_spec.settings_on(split.gpu, share), facts=facts)


def _remove_pipeline(model_spec: ResolvedModelSpec, split: ModelSplit, root: str) -> Iterator[Fix]:
    """Yield the same parallelism without pipeline stages, if only they prevent prefill and decode on different
    replicas."""
    shape = replace(split.shape, pp=1, partition=None)
    single = replace(split, shape=shape, nodes=1, gpus=split.gpus[:1], hosts=split.hosts[:1])
    if split.shape.pp == 1 or find_transfer_error(model_spec, single):
        return
    without = Rewrite(
        (*model_spec.path, "parallelism"),
        lambda written: {key: value for key, value in written.items() if key not in ("pipeline", "layers")},
    )
    yield Fix(f"{root}.parallelism", why="without pipeline stages", rewrite=without)


def _convert(found: FitFix, split: ModelSplit, model_spec: ResolvedModelSpec) -> Fix:
    """Return the settings of `fit` as a key of the fleet file; as a larger pool, if the pool lacks the GPUs."""
    root = f"/models.{model_spec.written}"
    gpu = found.settings.get("gpu")
    if gpu and model_spec.declared.pool is not None and split.inventory.is_uniform:
        return Fix(f"/pools.{split.inventory.name}.gpu", gpu, found.why)
    if gpu:
        count = split.shape.tp * split.shape.pp
        pool = {"gpu": gpu, "nodes": 1} | ({"gpusPerNode": count} if count > 1 else {})
        name = str(gpu).lower()
        return Fix(f"/pools.{name}", pool, f"a pool of another GPU, {found.why}")
    if not found.settings:
        kind = "gpus" if found.why.startswith("use a GPU of the catalog") else "models"
        return Fix(command=f"rayhelm catalog {kind}", why=found.why)
    lacking, inventory = _describe_missing_gpus(found, split), split.inventory
    if lacking and inventory.is_uniform and not inventory.partitioning and not model_spec.declared.parallelism:
        nodes = _enough_nodes(found, split)
        larger = Rewrite(("pools", inventory.name), lambda written: {**written, **nodes})
        return Fix(f"/pools.{inventory.name}", why=f"{found.why}; {lacking}", rewrite=larger)
    keys = [(*_FLEET_KEYS[name], value) for name, value in found.settings.items()]
    key, below, value = keys[0]
    if not below:
        return Fix(f"{root}.{key}", value, found.why)
    plain = {below: list(value) if isinstance(value, tuple) else value for _, below, value in keys}
    return Fix(f"{root}.{key}", plain, "; ".join(part for part in (found.why, lacking) if part))


def _describe_missing_gpus(found: FitFix, split: ModelSplit) -> str:
    """Describe the GPUs that the pool lacks for the split of a fix; empty if it has enough."""
    pool = split.inventory
    per_host, stages = _count_gpus(found, split)
    total = per_host * stages
    if per_host > find_largest_host(pool):
        return f"pool `{pool.name}` has {find_largest_host(pool)} per host"
    if total > find_largest_host(pool) and not pool.network.spans_hosts:
        return f"pool `{pool.name}` has {find_largest_host(pool)} per host, and no replica is split over its network"
    return f"pool `{pool.name}` has {pool.gpu_count}" if total > pool.gpu_count else ""


def _count_gpus(found: FitFix, split: ModelSplit) -> tuple[int, int]:
    """Return the GPUs of a stage, and the number of stages."""
    tp, pp = (found.settings.get(f"{kind}_parallel_size") for kind in ("tensor", "pipeline"))
    return int(str(tp or split.shape.tp)), int(str(pp or split.shape.pp))


def _enough_nodes(found: FitFix, split: ModelSplit) -> dict[str, int]:
    """Return the nodes and GPUs per node of a pool that has the split of a fix."""
    pool, (per_host, stages) = split.inventory, _count_gpus(found, split)
    if pool.network.spans_hosts:
        per_node = max(per_host, find_largest_host(pool))
        return {"nodes": max(pool.node_count, -(-stages // (per_node // per_host))), "gpusPerNode": per_node}
    return {"nodes": pool.node_count, "gpusPerNode": per_host * stages}


def _find_nearest_split(model_spec: ResolvedModelSpec, split: ModelSplit, wanted: int, root: str) -> Fix:
    """Return the accepted tensor parallel size nearest to the pinned one, within the GPUs of a host."""
    most = find_largest_host(split.inventory)
    sizes = sorted(
        list_tensor_parallel_sizes(model_spec.model, model_spec.engine, most), key=lambda tp: (abs(tp - wanted), -tp)
    )
    others = ", ".join(map(str, sorted(sizes[1:])))
    return Fix(f"{root}.parallelism", {"tensor": sizes[0]}, f"or {others}" if others else "")


def _is_refused(model_spec: ResolvedModelSpec, shape: ReplicaShape) -> bool:
    return bool(list_split_errors(model_spec.model, shape, model_spec.engine))


def _find_expert_split(model_spec: ResolvedModelSpec, split: ModelSplit, root: str) -> Fix:
    """Return the largest split of a host with whole experts on each GPU, or the removal of the pin if none has them."""
    ranks, model, engine = split.shape.dp, model_spec.model, model_spec.engine
    most = find_largest_host(split.inventory) // ranks
    sizes = list_tensor_parallel_sizes(model, engine, most, has_expert_parallel=True, dp=ranks)
    if ranks > 1:
        path = f"{root}.parallelism"
        why = f"the GPUs of a host, with whole experts on each of {ranks} ranks"
        return (
            Fix(path, write_parallelism(ReplicaShape(sizes[-1], 1, ranks, True)), why) if sizes else Fix.removal(path)
        )
    if not sizes:
        why = "or use a pool with more GPUs in a host" if model.experts else ""
        return Fix.removal(f"{root}.parallelism.expert", why)
    return Fix(f"{root}.parallelism", {"tensor": sizes[-1], "expert": True}, "the largest in a host of the pool")


def _report_no_split(
    model_spec: ResolvedModelSpec, pools: Sequence[PoolInventory], path: tuple[str | int, ...]
) -> Problem:
    """Return the problem of pins that need more GPUs or hosts than any pool has, so that no split was tried."""
    name = model_spec.written
    root, pin = f"/models.{name}", model_spec.declared.parallelism
    if not pools:
        key = "pools" if model_spec.declared.pools else "pool"
        message = (
            f"model `{name}` is pinned to a pool of another cluster than its service, or than another"
            " model with the same served name"
        )
        return problem_at(path, message, Fix.removal(f"{root}.{key}", "or change `service`"))
    experts = " with expert parallelism" if pin and pin.expert else ""
    ranks = f"DP {pin.data} x " if pin and pin.data and pin.data > 1 else ""
    split = f"{ranks}TP {pin.tensor or 'any'} x PP {count_pinned_stages(pin) or 'any'}{experts}" if pin else "any split"
    have = "; ".join(
        f"pool `{pool.name}` has {pool.node_count} hosts with {find_largest_host(pool)} GPUs on {pool.network}"
        for pool in pools
    )
    message = f"model `{name}`: no pool has the hosts for {split}. {have}"
    if pin and pin.data and all(_has_rest(pool, pin) for pool in pools):
        ranks = f"{pin.data} data parallel ranks" + (f" of TP {pin.tensor}" if pin.tensor else "")
        message = f"model `{name}`: {ranks} do not divide the GPUs of a host. {have}"
    return problem_at(path, message, _find_smaller_pin(model_spec, pools, root))


def _find_smaller_pin(model_spec: ResolvedModelSpec, pools: Sequence[PoolInventory], root: str) -> Fix:
    """Return the pin within the GPUs of a host, with as many GPUs as before if replicas can have them. Without a
    smaller pin, or where only parts of GPUs are left, return its removal."""
    pin, most = model_spec.declared.parallelism, max(find_largest_host(pool) for pool in pools)
    free = "the planner then chooses"
    if not pin or all(pool.partitioning for pool in pools):
        return Fix.removal(f"{root}.parallelism", free)
    if pin.data and pin.data > 1:
        return _find_dividing_ranks(model_spec, pin, most, root) or Fix.removal(f"{root}.parallelism", free)
    if pin.tensor and pin.tensor <= most and not pin.pipeline:
        return Fix.removal(f"{root}.parallelism", free)
    return Fix(f"{root}.parallelism", {"tensor": most}, f"or remove `parallelism`: {free}")


def _has_rest(pool: PoolInventory, pin: Parallelism) -> bool:
    """Return whether a host has the GPUs of all data parallel ranks, and others that they do not divide."""
    there, needed = find_largest_host(pool), (pin.data or 1) * (pin.tensor or 1) * (count_pinned_stages(pin) or 1)
    return pool.is_uniform and not pool.partitioning and 1 < needed <= there and there % needed != 0


def _find_dividing_ranks(model_spec: ResolvedModelSpec, pin: Parallelism, most: int, root: str) -> Fix | None:
    """Return data parallel ranks that divide the GPUs of a host: more than the pinned ones, or several replicas with as
    many ranks together."""
    wanted, room = pin.data or 1, most // (pin.tensor or 1)
    sizes = [ranks for ranks in range(2, room + 1) if room % ranks == 0]
    if larger := next((ranks for ranks in sizes if ranks > wanted), None):
        return Fix(f"{root}.parallelism.data", larger, f"the next size that divides the {most} GPUs of a host")
    if not room or room >= wanted:
        return None
    groups = -(-wanted // room)
    if isinstance(model_spec.declared.replicas, int):
        groups *= model_spec.declared.replicas
    split = {"tensor": pin.tensor or 1} | ({"data": room} if room > 1 else {})
    change = Rewrite(model_spec.path, lambda written: {**written, "parallelism": split, "replicas": groups})
    return Fix(root, why=f"a replica is on one host: {groups} of them have the ranks", rewrite=change)


def _find_best_of_each_pool(rejected: Sequence[RejectedSplit]) -> dict[str, str]:
    best: dict[str, RejectedSplit] = {}
    for each in rejected:
        name = each.split.inventory.name
        if name not in best or _measure_distance(each) < _measure_distance(best[name]):
            best[name] = each
    return {name: f"{each.split.gpu_name} at {each.split.shape}: {each.why}" for name, each in best.items()}


def _measure_distance(rejected: RejectedSplit) -> tuple[bool, float]:
    """Return splits with the smallest shortage of memory first, then those rejected for another reason."""
    return (rejected.short_gib == 0, rejected.short_gib)


def _find_path(model_spec: ResolvedModelSpec) -> tuple[str | int, ...]:
    if model_spec.declared.parallelism:
        return (*model_spec.path, "parallelism")
    if model_spec.declared.pools:
        return (*model_spec.path, "pools")
    return (*model_spec.path, "pool") if model_spec.declared.pool else model_spec.path
