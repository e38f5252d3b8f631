"""Rules of models that answer for others: other places of the same weights, and other versions."""

import json
from collections.abc import Iterator

from rayhelm.errors import Problem
from rayhelm.spec.document import Document
from rayhelm.spec.fleet import Fleet
from rayhelm.spec.models import STABLE, ServedAs
from rayhelm.spec.references import reference

__all__ = ["check_served_as"]


def check_served_as(fleet: Fleet, document: Document) -> Iterator[Problem]:
    for name, model in fleet.models.items():
        if other := model.served_as:
            yield from _one(name, other, fleet, document)
    for name in fleet.models:
        if not fleet.models[name].served_as:
            yield from _together(name, fleet, document)
    yield from _pins(fleet, document)


def _one(name: str, other: ServedAs, fleet: Fleet, document: Document) -> Iterator[Problem]:
    path = ("models", name, "servedAs")
    known = [model for model in fleet.models if model != name]
    if other.model not in known:
        yield from reference(document, (*path, "model"), other.model, known, "other model")
        return
    base, here = fleet.models[other.model], fleet.models[name]
    if base.served_as:
        yield document.problem(
            (*path, "model"),
            f"`{other.model}` answers for `{base.served_as.model}` itself, so no client knows its name",
            f"model: {base.served_as.model}",
        )
    if here.task != base.task:
        yield document.problem(path, f"`{name}` does `{here.task}`, and `{other.model}` does `{base.task}`", _TASK)
    if base.application and here.application and dict(here.application.paths) != dict(base.application.paths):
        yield document.problem(
            ("models", name, "application"),
            f"it has other paths than `{other.model}`, and the gateway opens those of `{other.model}` for both",
            f"paths: {json.dumps(base.application.paths)}",
        )
    if other.version == STABLE:
        yield document.problem(
            (*path, "version"), f"`{STABLE}` is `{other.model}` itself", "version: next   # or left out: another place"
        )
    if other.weight is not None and not other.version:
        yield document.problem(
            (*path, "weight"), "places of one version share by load; a weight is for a version", "version: next"
        )
    if not other.version and (here.source, here.revision) != (base.source, base.revision):
        yield document.problem(
            path,
            f"it has other weights than `{other.model}`, and clients would get now these and now those",
            f"servedAs: {{model: {other.model}, version: next, weight: 20}}   # or the same source and revision",
        )


_TASK = "a task of its own is a model of its own: remove `servedAs`"


def _together(name: str, fleet: Fleet, document: Document) -> Iterator[Problem]:
    """What those that answer to one name are to each other."""
    homes: dict[str, str] = {}
    weights: dict[str, int] = {}
    clusters: dict[str, str] = {}
    for model in fleet.served_as(name):
        spec = fleet.models[model]
        path = ("models", model)
        service, version = fleet.service_of(model), fleet.version_of(model)
        if (first := homes.setdefault(service, model)) != model:
            yield document.problem(
                (*path, "service") if spec.service else path,
                f"`{first}` answers to `{name}` in service `{service}` already, and a service has a name once",
                f"service: {model}",
            )
        weight = spec.served_as.weight if spec.served_as else None
        if weight is not None and weights.setdefault(version, weight) != weight:
            yield document.problem(
                (*path, "servedAs", "weight"),
                f"version `{version}` has the weight {weights[version]} already",
                f"weight: {weights[version]}   # write it in one place",
            )
        if pinned := _pinned(service, fleet):
            cluster = fleet.pools[pinned].cluster
            first = clusters.setdefault(cluster, model)
            if len(clusters) > 1 and first == model:
                other = next(iter(clusters))
                yield document.problem(
                    (*path, "pool") if spec.pool else path,
                    f"it would answer to `{name}` on cluster `{cluster}`, and a gateway reaches the services of its own"
                    f" cluster, `{other}`",
                    f"name an endpoint with `host` in the values of chart gateway, or a pool of cluster `{other}`",
                )
    if (total := sum(weights.values())) > 100:
        told = ", ".join(f"{version} {weight}" for version, weight in weights.items())
        last = [model for model in fleet.served_as(name) if fleet.version_of(model) in weights][-1]
        yield document.problem(
            ("models", last, "servedAs", "weight"),
            f"versions of `{name}` have {total} percent ({told}), and there are 100",
            "weight: 20",
        )


def _pinned(service: str, fleet: Fleet) -> str | None:
    """Pool of a service, where one of its models says it."""
    pools = (fleet.models[model].pool for model in fleet.models_of(service))
    return next((pool for pool in pools if pool in fleet.pools), None)


def _pins(fleet: Fleet, document: Document) -> Iterator[Problem]:
    for name, tenant in fleet.tenants.items():
        for model, version in tenant.pinned_versions.items():
            path = ("tenants", name, "pinnedVersions", model)
            if model in fleet.models and (known := fleet.served_name(model)) != model:
                yield document.problem(
                    path, f"clients know `{model}` as `{known}`", f"pinnedVersions: {{{known}: {version}}}"
                )
                continue
            if model not in tenant.models:
                may = ", ".join([*tenant.models, model])
                yield document.problem(path, f"`{name}` may not call `{model}`", f"models: [{may}]")
                continue
            if model not in fleet.models:
                continue
            versions = dict.fromkeys(fleet.version_of(each) for each in fleet.served_as(model))
            yield from reference(document, path, version, versions, "version", lead=f"`{model}` has no version")
