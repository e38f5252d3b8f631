"""The line of the fleet file that a problem of a release comes from."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rayhelm.errors import Problem
from rayhelm.render.releases import Release
from rayhelm.spec.fleet import Fleet
from rayhelm.spec.load import LoadedFleet

__all__ = ["locate", "names_in"]

FleetPath = tuple[str, ...]


def locate(problem: Problem, release: Release, loaded: LoadedFleet, names: Sequence[str] = ()) -> Problem:
    """The problem with file and line of the fleet file. `names` are what it is about: models, tenants or pools.

    The first part of the fleet that has one of the names is taken, else the part that the release is made for.
    """
    parts = list(_list_parts(release, loaded.fleet))
    part = next((part for part in parts if part[1] in names), parts[-1])
    return replace(
        problem,
        file=loaded.document.file,
        line=loaded.document.line(part),
        path=problem.path or ".".join(part),
    )


def names_in(path: str) -> tuple[str, ...]:
    """Names in a dotted path of the values: `serve.applications.chat.models.chat` has `chat`. No name has dots."""
    return tuple(step.partition("[")[0] for step in path.split(".")) if path else ()


def _list_parts(release: Release, fleet: Fleet) -> Iterator[FleetPath]:
    """Parts of the fleet that the values of a release are made from, each with its name second; the last is the one
    to name if nothing else is known."""
    if release.chart == "tenant":
        yield ("tenants", release.name)
        return
    if release.chart == "ray-service":
        models = fleet.models_of(release.name)
        yield from (("models", model) for model in models)
        pools = dict.fromkeys(pool for model in models if (pool := fleet.models[model].pool))
        yield from (("pools", pool) for pool in pools)
        yield ("models", models[0])
        return
    if release.chart == "platform":
        yield from (("pools", name) for name, pool in fleet.pools.items() if pool.cluster == release.cluster)
        yield ("clusters", release.cluster)
        return
    yield from (("tenants", tenant) for tenant in fleet.tenants)
    yield from (("models", model) for model in fleet.models)
    yield ("clusters", release.cluster, "gateway")
