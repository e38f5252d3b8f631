"""Find the line of the fleet file that causes a problem of a release."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rayhelm.deploy.compose.planned_values import get_value
from rayhelm.deploy.compose.release_overrides import list_placed
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.errors import Problem
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.load import LoadedFleet
from rayhelm.fleet.yaml_nodes import dotted

__all__ = ["locate", "names_in"]

FleetPath = tuple[str | int, ...]


def locate(problem: Problem, release: Release, loaded: LoadedFleet, names: Sequence[str] = ()) -> Problem:
    """Return the problem with file and line of the fleet file. `names`: models, tenants or pools that it concerns.

    The line is that of the first part of the fleet with one of the names, else of the part that the release serves.
    """
    parts = list(_list_parts(release, loaded.fleet))
    part = next((part for part in parts if part[1] in names), parts[-1])
    part = _find_override(problem.path, release, loaded) or part
    return replace(
        problem,
        file=loaded.document.file,
        line=loaded.document.line(part),
        path=problem.path or dotted(part),
    )


def names_in(path: str) -> tuple[str, ...]:
    """Return the names in a dotted path of the values: `serve.applications.chat.models.chat` has `chat`. No name has
    dots."""
    return tuple(step.partition("[")[0] for step in path.split(".")) if path else ()


def _list_parts(release: Release, fleet: Fleet) -> Iterator[FleetPath]:
    """Yield the paths of the parts of the fleet that the values of a release come from. The second item of a path is
    the name; the last path is the default."""
    if release.chart == "argocd":
        yield from (("gitops", part) for part in ("charts", "clusters", "operators", "repository"))
        return
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


def _find_override(key: str, release: Release, loaded: LoadedFleet) -> FleetPath | None:
    """Return the override that sets a key of a release, one below or beside it, or a whole value above it. The last
    one decides."""
    steps = tuple(step.partition("[")[0] for step in key.split(".")) if key else ()
    name = release.name if release.chart in ("ray-service", "tenant") else release.cluster
    found: FleetPath | None = None
    for placed in list_placed(release.chart, name, _find_pools(release, loaded), loaded.fleet):
        below = steps[len(placed.key) :]
        if not steps or steps[: len(placed.key)] != placed.key:
            continue
        for end in range(len(below), -1, -1):
            value = get_value(placed.override.values, below[:end])
            # A rule names a key that is missing beside the one that is wrong: `reason` beside `enabled`.
            is_near = end >= len(below) - 1 and (end or placed.key)
            if value is not None and (is_near or not isinstance(value, Mapping)):
                found = (*placed.override.path, *below[:end])
                break
    return found


def _find_pools(release: Release, loaded: LoadedFleet) -> dict[str, str]:
    """Return the pool of each worker group by their names: a group has the name of its pool, and a suffix."""
    if not isinstance(release.values, RayServiceValues):
        return {}
    pools = sorted(loaded.fleet.pools, key=len, reverse=True)
    return {
        group: next((pool for pool in pools if group == pool or group.startswith(f"{pool}-")), "")
        for group in release.values.worker_groups
    }
