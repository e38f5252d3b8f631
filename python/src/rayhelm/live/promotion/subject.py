"""The version of a model that is promoted, as the fleet file and its plan have it."""

from dataclasses import dataclass

from rayhelm.errors import Fix, FleetError, Problem, UsageError
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.models import STABLE, ModelSpec, Slo
from rayhelm.fleet.nearest import did_you_mean
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.yaml_nodes import Path
from rayhelm.planner.plan import Plan

__all__ = ["Subject", "find_subject"]

_SLASH = "--"
"""What the gateway has in place of `/` in the names of its backends."""


@dataclass(frozen=True)
class Subject:
    """A version, and the present one, which has the rest of the requests."""

    model: str
    name: str
    """Name that clients send."""
    version: str
    weight: int
    """Percentage of the requests now."""
    weight_path: Path
    """Key of the fleet file with the weight; it may be missing."""
    most: int
    """What the weights of the other versions leave of 100."""
    slo: Slo
    revision: str
    """Of the weights that are served; empty if the file has none."""
    services: frozenset[tuple[str, str]]
    """Namespace and name of each service of the version."""
    present_services: frozenset[tuple[str, str]]
    gateways: frozenset[tuple[str, str]]
    """Namespace of each gateway, and the label `cluster` of its series; empty without one."""
    planned_rate: float | None
    """Requests/s that the replicas of the version are planned for; None if the fleet file has no `traffic` for them."""
    is_pinned: bool
    """Tenants have pinned versions, so the shares of the requests are not the weights."""

    def backend_of(self, version: str) -> str:
        """Backend of a version in the gateway: the label `proxy` of its series."""
        return f"{self.name.replace('/', _SLASH)}:{version}"


def find_subject(model: str, plan: Plan) -> Subject:
    """Raises UsageError for an unknown model, and FleetError for one that is no version of another model, or that no
    gateway distributes requests to."""
    fleet = plan.source.fleet
    if problems := _check_model(model, fleet):
        raise FleetError(problems)
    name, version = fleet.served_name(model), fleet.version_of(model)
    base, spec = fleet.models[name], fleet.models[model]
    owner = _find_owner(model, version, fleet)
    others = {fleet.version_of(each): _weight_of(fleet, each) for each in fleet.served_as(name)}
    others.pop(version)
    gateways = {cluster: each for cluster, each in plan.gateways.items() if name in each.models}
    if not gateways:
        message = f"no tenant may call `{name}`, so no gateway distributes its requests"
        path = ("tenants",) if fleet.tenants else ()
        fix = Fix("/tenants", {"apps": {"models": [name]}}, "the team that calls it") if not fleet.tenants else None
        example = fix or Fix.advice(f"add `{name}` to `models` of the tenant that calls it")
        raise FleetError(problem_at(path, message, example))
    return Subject(
        model=model,
        name=name,
        version=version,
        weight=_weight_of(fleet, owner),
        weight_path=("models", owner, "servedAs", "weight"),
        most=100 - sum(others.values()),
        slo=_merge(base, spec),
        revision=spec.revision or "",
        services=_list_services(name, version, plan),
        present_services=_list_services(name, STABLE, plan),
        gateways=frozenset((each.namespace, _label_of(cluster, fleet)) for cluster, each in gateways.items()),
        planned_rate=_sum_planned(name, version, fleet),
        is_pinned=any(name in tenant.pinned_versions for tenant in fleet.tenants.values()),
    )


def _check_model(model: str, fleet: Fleet) -> list[Problem]:
    if model not in fleet.models:
        raise UsageError(f"the fleet has no model `{model}`; {did_you_mean(model, fleet.models)}".rstrip("; "))
    served_as = fleet.models[model].served_as
    if served_as and served_as.version:
        return []
    others = [each for each, spec in fleet.models.items() if spec.served_as and spec.served_as.version]
    known = f"; versions are {', '.join(f'`{each}`' for each in others)}" if others else ""
    if served_as:
        message = f"`{model}` has the same weights as `{served_as.model}`, and no version to promote{known}"
        fix = Fix("servedAs", {"model": served_as.model, "version": "next", "weight": 0}, "if its weights are others")
        return [problem_at(("models", model), message, fix)]
    message = f"`{model}` has no `servedAs`: it serves no other version of a model{known}"
    example = f"its new version is a second model: servedAs: {{model: {model}, version: next, weight: 0}}"
    return [problem_at(("models", model), message, Fix.advice(example))]


def _find_owner(model: str, version: str, fleet: Fleet) -> str:
    """Return the model that has the weight of a version. Raises FleetError if several have it."""
    same = [each for each in fleet.served_as(fleet.served_name(model)) if fleet.version_of(each) == version]
    owners = [each for each in same if (spec := fleet.models[each].served_as) and spec.weight is not None]
    if len(owners) > 1:
        message = f"version `{version}` has its weight at {len(owners)} models, and one edit cannot change them all"
        path = ("models", owners[1], "servedAs", "weight")
        raise FleetError(problem_at(path, message, Fix.removal(why=f"`{owners[0]}` has it")))
    return owners[0] if owners else model


def _weight_of(fleet: Fleet, model: str) -> int:
    served_as = fleet.models[model].served_as
    return (served_as.weight if served_as else None) or 0


def _merge(base: ModelSpec, spec: ModelSpec) -> Slo:
    """Return what the name promises to clients; a latency that it does not have is the one of the version."""
    own = {"ttft": base.slo.ttft or spec.slo.ttft, "tpot": base.slo.tpot or spec.slo.tpot}
    return base.slo.model_copy(update=own)


def _list_services(name: str, version: str, plan: Plan) -> frozenset[tuple[str, str]]:
    models = [each for each in plan.models.values() if (each.served_as, each.version) == (name, version)]
    return frozenset((plan.services[each.service].namespace, each.service) for each in models)


def _sum_planned(name: str, version: str, fleet: Fleet) -> float | None:
    models = [fleet.models[each] for each in fleet.served_as(name) if fleet.version_of(each) == version]
    rates = [each.traffic.requests_per_second for each in models if each.traffic and each.states_traffic]
    return sum(rates) if len(rates) == len(models) else None


def _label_of(cluster: str, fleet: Fleet) -> str:
    scraped = fleet.clusters[cluster].prometheus
    return (scraped.cluster_label if scraped else None) or ""
