"""Rules of `servedAs`: models that serve the name of another model, as further replicas or as another version."""

from collections.abc import Iterator

from rayhelm.errors import Fix, Problem
from rayhelm.fleet.check_remotes import check_clusters_of_name
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.models import STABLE, ServedAs
from rayhelm.fleet.names import derive_kubernetes_name
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.references import reference

__all__ = ["check_served_as"]


def check_served_as(fleet: Fleet) -> Iterator[Problem]:
    for name, model in fleet.models.items():
        if other := model.served_as:
            yield from _check_model(name, other, fleet)
    for name in fleet.models:
        if not fleet.models[name].served_as:
            yield from _check_name(name, fleet)
            yield from check_clusters_of_name(name, fleet)
    yield from _check_pinned_versions(fleet)


def _check_model(name: str, other: ServedAs, fleet: Fleet) -> Iterator[Problem]:
    path = ("models", name, "servedAs")
    known = [model for model in fleet.models if model != name]
    if other.model not in known:
        yield from reference((*path, "model"), other.model, known, "other model", removal="..")
        return
    base, here = fleet.models[other.model], fleet.models[name]
    if base.served_as:
        yield problem_at(
            (*path, "model"),
            f"`{other.model}` is itself served as `{base.served_as.model}`, so clients cannot call it",
            Fix("", base.served_as.model),
        )
    if here.task != base.task:
        yield problem_at(
            path,
            f"`{name}` has task `{here.task}`, and `{other.model}` has task `{base.task}`; one name has one task",
            Fix.removal(),
        )
    if base.application and here.application and dict(here.application.paths) != dict(base.application.paths):
        yield problem_at(
            ("models", name, "application"),
            f"its `paths` differ from those of `{other.model}`, which the gateway allows for both",
            Fix("paths", dict(base.application.paths)),
        )
    if other.version == STABLE:
        yield problem_at(
            (*path, "version"),
            f"`{STABLE}` is the version of `{other.model}` itself",
            Fix("", "next", "or leave it out, for further replicas of the same weights"),
        )
    if other.weight is not None and not other.version:
        yield problem_at(
            (*path, "weight"),
            "`weight` needs `version`: within one version the gateway distributes by load",
            Fix("../version", "next"),
        )
    if not other.version and (here.source, here.revision) != (base.source, base.revision):
        yield problem_at(
            path,
            f"its weights differ from those of `{other.model}`, so clients would get either at random",
            Fix("", {"model": other.model, "version": "next", "weight": 20}, "or use the same source and revision"),
        )


def _check_name(name: str, fleet: Fleet) -> Iterator[Problem]:
    """Rules between the models that serve one name."""
    services: dict[str, str] = {}
    weights: dict[str, int] = {}
    for model in fleet.served_as(name):
        spec = fleet.models[model]
        path = ("models", model)
        service, version = fleet.service_of(model), fleet.version_of(model)
        if (first := services.setdefault(service, model)) != model:
            yield problem_at(
                (*path, "service") if spec.service else path,
                f"`{first}` already serves `{name}` in service `{service}`; a service has each name once",
                Fix("../service" if spec.service else "service", derive_kubernetes_name(model)),
            )
        weight = spec.served_as.weight if spec.served_as else None
        if weight is not None and weights.setdefault(version, weight) != weight:
            yield problem_at(
                (*path, "servedAs", "weight"),
                f"version `{version}` already has the weight {weights[version]}",
                Fix("", weights[version], "write it at one model of the version"),
            )
    if (total := sum(weights.values())) > 100:
        each = ", ".join(f"{version} {weight}" for version, weight in weights.items())
        last = [model for model in fleet.served_as(name) if fleet.version_of(model) in weights][-1]
        yield problem_at(
            ("models", last, "servedAs", "weight"),
            f"the weights of the versions of `{name}` add up to {total} ({each}); the limit is 100",
            Fix("", max(0, 100 - total + weights[fleet.version_of(last)]), "what the others leave of 100"),
        )


def _check_pinned_versions(fleet: Fleet) -> Iterator[Problem]:
    for name, tenant in fleet.tenants.items():
        for model, version in tenant.pinned_versions.items():
            path = ("tenants", name, "pinnedVersions", model)
            if model in fleet.models and (known := fleet.served_name(model)) != model:
                message = f"clients call `{model}` as `{known}`"
                others = {name: pin for name, pin in tenant.pinned_versions.items() if name != model}
                yield problem_at(path, message, Fix("..", {**others, known: version}))
                continue
            if owner := fleet.find_alias_owner(model):
                pins = {**tenant.pinned_versions, owner: tenant.pinned_versions.get(owner, version)}
                del pins[model]
                yield problem_at(path, f"`{model}` is an alias of `{owner}`: pin the model", Fix("..", pins))
                continue
            if model not in tenant.models:
                message = f"tenant `{name}` may not call `{model}`"
                is_served = model in {*fleet.models, *fleet.adapters}
                fix = Fix("../../models", list(dict.fromkeys([*tenant.models, model])))
                yield problem_at(path, message, fix if is_served else Fix.removal("", "no model has this name"))
                continue
            if model not in {*fleet.models, *fleet.adapters}:
                continue
            served_by = fleet.served_as(model) if model in fleet.models else (fleet.served_by(model),)
            versions = dict.fromkeys(fleet.version_of(each) for each in served_by)
            yield from reference(path, version, versions, "version", lead=f"`{model}` has no version")
