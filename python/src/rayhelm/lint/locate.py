"""Where in the fleet file a problem of a release comes from."""

import re
from collections.abc import Iterator
from dataclasses import replace

from rayhelm.errors import Problem
from rayhelm.render.releases import Release
from rayhelm.spec.fleet import Fleet
from rayhelm.spec.load import LoadedFleet

__all__ = ["placed"]


def placed(problem: Problem, release: Release, loaded: LoadedFleet) -> Problem:
    """A problem of the values, at the place of the fleet file that it comes from: the first of those that might be
    meant whose name is told, else the last."""
    told = f"{problem.path} {problem.message}"
    places = list(_places(release, loaded.fleet))
    meant = next((place for place in places if re.search(rf"(?<![\w-]){place[1]}(?![\w-])", told)), places[-1])
    here = loaded.document.problem(meant, problem.message)
    return replace(problem, file=here.file, line=here.line, path=problem.path or here.path)


def _places(release: Release, fleet: Fleet) -> Iterator[tuple[str, ...]]:
    """Where the values of a release come from, each with its name second."""
    if release.chart == "tenant":
        yield ("tenants", release.name)
        return
    if release.chart == "ray-service":
        models = fleet.models_of(release.name)
        yield from (("models", model) for model in models)
        yield ("models", models[0])
        return
    if release.chart == "platform":
        yield from (("pools", name) for name, pool in fleet.pools.items() if pool.cluster == release.cluster)
        yield ("clusters", release.cluster)
        return
    yield from (("tenants", tenant) for tenant in fleet.tenants)
    yield from (("models", model) for model in fleet.models)
    yield ("clusters", release.cluster, "gateway")
