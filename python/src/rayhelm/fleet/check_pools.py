"""Rules of `pools` of a model: the planner makes a model of each pool."""

from collections.abc import Iterator

from rayhelm.errors import Fix, Problem
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.models import ModelSpec, Replicas
from rayhelm.fleet.names import derive_kubernetes_name, name_part
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.references import reference

__all__ = ["check_pools"]

_LONGEST_NAME = 96
"""Characters of a `ModelName`."""


def check_pools(fleet: Fleet) -> Iterator[Problem]:
    """Yield the problems of `pools` of models."""
    used = dict.fromkeys((*fleet.service_names, *fleet.services), "a service of the fleet file")
    for name, spec in fleet.models.items():
        if spec.pools:
            yield from _check_references(name, spec, fleet)
            yield from _check_combinations(name, spec)
            yield from _check_names(name, spec, fleet, used)


def _check_references(name: str, spec: ModelSpec, fleet: Fleet) -> Iterator[Problem]:
    path = ("models", name, "pools")
    for index, pool in enumerate(spec.pools):
        yield from reference((*path, index), pool, fleet.pools, "pool", listed=spec.pools)
    if len(set(spec.pools)) < len(spec.pools):
        once = list(dict.fromkeys(spec.pools))
        twice = next(pool for pool in once if spec.pools.count(pool) > 1)
        fix = Fix("", once) if len(once) > 1 else Fix("../pool", once[0], replaces="")
        yield problem_at(path, f"pool `{twice}` is listed twice", fix)
    clusters = {pool: fleet.pools[pool].cluster for pool in spec.pools if pool in fleet.pools}
    if len(set(clusters.values())) > 1:
        first = next(iter(clusters.values()))
        here = [pool for pool, cluster in clusters.items() if cluster == first]
        where = ", ".join(f"`{pool}` in `{cluster}`" for pool, cluster in clusters.items())
        why = "or write a model for each cluster, joined by `servedAs`"
        fix = Fix("", here, why) if len(here) > 1 else Fix("../pool", here[0], why, replaces="")
        yield problem_at(path, f"its pools are in different clusters: {where}", fix)


def _check_combinations(name: str, spec: ModelSpec) -> Iterator[Problem]:
    """Yield the keys that `pools` cannot be combined with."""
    path = ("models", name)
    if spec.pool:
        yield problem_at((*path, "pool"), "a model has either `pool` or `pools`", Fix.removal())
    if spec.served_as:
        message = f"its replicas serve `{spec.served_as.model}`: a model with `servedAs` is on one pool"
        yield problem_at((*path, "pools"), message, Fix("../pool", spec.pools[0], replaces=""))
    if isinstance(spec.replicas, Replicas):
        message = "bounds of autoscaling are not divided among `pools`: write the number of replicas, or leave it out"
        yield problem_at((*path, "replicas"), message, Fix("", max(spec.replicas.max, len(spec.pools))))
    elif spec.replicas is not None and spec.replicas < len(spec.pools):
        message = f"{spec.replicas} replicas are fewer than its {len(spec.pools)} pools, and each pool has at least one"
        yield problem_at((*path, "replicas"), message, Fix("", len(spec.pools)))
    if spec.adapters:
        message = "the adapters of a model are on one pool"
        yield problem_at((*path, "pools"), message, Fix("../pool", spec.pools[0], replaces=""))
    if spec.parallelism and spec.parallelism.separates_prefill:
        message = "prefill and decode on different replicas were not tested over several pools"
        yield problem_at((*path, "pools"), message, Fix("../pool", spec.pools[0], replaces=""))


def _check_names(name: str, spec: ModelSpec, fleet: Fleet, used: dict[str, str]) -> Iterator[Problem]:
    """Yield the pools whose model has a name that is too long or used already. `used`: services, with what has them;
    those of these pools are added."""
    for index, pool in enumerate(spec.pools[1:], 1):
        part = name_part(name, index, pool)
        service = derive_kubernetes_name(part)
        if len(part) > _LONGEST_NAME:
            why = f"which has {len(part)} characters; the limit is {_LONGEST_NAME}"
        elif part in (*fleet.models, *fleet.adapters, *fleet.aliases):
            why = "which is also another model, adapter or alias"
        elif service in used:
            why = f"whose service `{service}` is also {used[service]}"
        else:
            used[service] = f"that of model `{name}` on pool `{pool}`"
            continue
        others = [other for other in spec.pools if other != pool]
        fix = Fix("", others) if len(others) > 1 else Fix("../pool", others[0], "or rename one", replaces="")
        message = f"the replicas on pool `{pool}` are the model `{part}`, {why}"
        yield problem_at(("models", name, "pools"), message, fix)
