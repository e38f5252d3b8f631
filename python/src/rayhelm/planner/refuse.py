"""Says why a model has no place, and what would give it one."""

from rayhelm.errors import Problem
from rayhelm.planner.candidates import Candidate, Refusal, Wish, utilization
from rayhelm.planner.fit import Fit, fit
from rayhelm.planner.placement import room_for
from rayhelm.planner.site import PoolSite
from rayhelm.planner.splits import Split
from rayhelm.spec.load import LoadedFleet

__all__ = ["nothing_fits", "too_little_room"]


def nothing_fits(wish: Wish, pools: list[PoolSite], refused: list[Refusal], loaded: LoadedFleet) -> Problem:
    """No split of any pool holds the model."""
    path = _path(wish)
    if not refused:
        return loaded.document.problem(path, _no_split(wish, pools))
    nearest = min(refused, key=lambda refusal: (refusal.short_gib == 0, refusal.short_gib))
    where = "; ".join(f"{name}: {why}" for name, why in _best_of_each_pool(refused).items())
    message = f"`{wish.name}` ({wish.model.id}) fits nowhere. {where}"
    return loaded.document.problem(path, message, "\n".join(_fit(wish, nearest.split).mends))


def too_little_room(wish: Wish, found: list[Candidate], sites: dict[str, PoolSite], loaded: LoadedFleet) -> Problem:
    """It would fit, but other models hold the cards, or the load needs more replicas than there are cards for."""
    best = min(found, key=lambda candidate: (not candidate.capacity.meets_slo, candidate.gpus))
    pool = best.split.pool
    there = room_for(best)
    count = "1 replica" if best.replicas == 1 else f"{best.replicas} replicas"
    needs = f"{count} of {best.split.cards * best.share:g} {best.split.gpu_name}"
    taken = f"{pool.used:g} of {pool.cards} cards are taken by models before it"
    message = f"`{wish.name}` needs {needs} at the planned load, and pool `{pool.name}` has room for {there} ({taken})"
    mends = [f"add {_more_hosts(best, there)} to pool `{pool.name}`"]
    if wish.spec.traffic and there:
        rate = wish.spec.traffic.requests_per_second * there / best.replicas
        mends.append(f"or plan for what fits:  requestsPerSecond: {rate:.3g}")
    if wish.spec.replicas is None and there:
        mends.append(f"or pin the replicas, and let requests wait:  replicas: {there}")
    return loaded.document.problem(("models", wish.name), message, "\n".join(mends))


def _no_split(wish: Wish, pools: list[PoolSite]) -> str:
    """Not one split could be tried: the pins ask for more cards or hosts than any pool has."""
    pin = wish.spec.parallelism
    asked = f"TP {pin.tensor or 'any'} x PP {pin.pipeline or 'any'}" if pin else "any split"
    have = "; ".join(
        f"`{site.name}` has {len(site.hosts)} hosts of {max(host.cards for host in site.hosts)} cards on {site.link}"
        for site in pools
    )
    return f"`{wish.name}`: no pool has the hosts for {asked}: {have or 'no pool is on the cluster of its service'}"


def _best_of_each_pool(refused: list[Refusal]) -> dict[str, str]:
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


def _fit(wish: Wish, split: Split) -> Fit:
    return fit(
        wish.model,
        split.gpus,
        split.tp,
        split.pp,
        gpu_memory_utilization=utilization(wish, wish.spec.gpu_fraction or 1.0),
        max_model_len=min(wish.context, wish.model.max_context),
        max_num_seqs=wish.pinned_int("max_num_seqs"),
        max_num_batched_tokens=wish.pinned_int("max_num_batched_tokens"),
        enforce_eager=bool(wish.spec.engine.get("enforce_eager")),
    )


def _more_hosts(best: Candidate, there: int) -> str:
    missing = best.replicas - there
    nodes = max(1, round(missing * best.split.nodes))
    return f"{nodes} node{'s' if nodes > 1 else ''}"


def _path(wish: Wish) -> tuple[str | int, ...]:
    if wish.spec.parallelism:
        return ("models", wish.name, "parallelism")
    return ("models", wish.name, "pool") if wish.spec.pool else ("models", wish.name)
