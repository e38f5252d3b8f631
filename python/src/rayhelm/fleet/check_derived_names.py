"""Refuse models whose Kubernetes names, derived from the names that clients send, are the same."""

from collections.abc import Iterator

from rayhelm.errors import Fix, Problem
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.problems import problem_at

__all__ = ["check_derived_names"]


def check_derived_names(fleet: Fleet) -> Iterator[Problem]:
    """Yield a problem for each model whose derived service or Serve application another model has.

    A number or a hash behind the second name would change when a model is added or removed, and with it the service
    that runs.
    """
    services: dict[str, str] = {}
    applications: dict[tuple[str, str], str] = {}
    for model, spec in fleet.models.items():
        name, service = fleet.application_of(model), fleet.service_of(model)
        other = services.setdefault(service, model) if not spec.service else model
        what = "service"
        if other == model:
            other = applications.setdefault((service, name), model)
            what = f"application in service `{service}`"
        if other == model or fleet.served_name(other) == fleet.served_name(model):
            continue
        yield problem_at(
            ("models", model),
            f"its Kubernetes name is `{name}`, which is also the {what} of `{other}`: capitals, dots, slashes and"
            " underscores do not count in Kubernetes names",
            Fix("service", _find_free(service, fleet), "a service of its own"),
        )


def _find_free(service: str, fleet: Fleet) -> str:
    taken = {*fleet.service_names, *(fleet.application_of(model) for model in fleet.models)}
    return next(name for number in range(2, len(taken) + 3) if (name := f"{service}-{number}") not in taken)
