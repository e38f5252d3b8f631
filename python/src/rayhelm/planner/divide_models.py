"""Models with `pools`: one model of the fleet file becomes one for each pool, joined at the gateway.

What follows knows models on one pool, each with its name in the fleet file. The planner divides the load among them.
"""

from collections.abc import Mapping

from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.models import ServedAs
from rayhelm.fleet.names import derive_kubernetes_name, name_part
from rayhelm.fleet.overrides import ChartValues

__all__ = ["divide_models"]


def divide_models(fleet: Fleet) -> tuple[Fleet, Mapping[str, str]]:
    """Return the fleet with a model for each pool of `pools`, and the name that each model has in the fleet file."""
    models, services, written = dict(fleet.models), dict(fleet.services), {name: name for name in fleet.models}
    for name, spec in fleet.models.items():
        for index, pool in enumerate(spec.pools):
            part = name_part(name, index, pool)
            models[part] = spec.model_copy(update={"pool": pool} | (_further(name) if index else {}))
            written[part] = name
            if index and (first := fleet.service_of(name)) in services:
                values = _select_values(services[first].values, fleet.application_of(name))
                own = derive_kubernetes_name(part)
                services[own] = services[first].model_copy(update={"aliases": None, "values": values})
    if len(written) == len(fleet.models):
        return fleet, written
    keys = {key: getattr(fleet, key) for key in fleet.model_fields_set}
    divided = Fleet.model_construct(
        fleet.model_fields_set | {"services"},
        **keys | {"models": dict(sorted(models.items())), "services": dict(sorted(services.items()))},
    )
    return divided, written


def _select_values(values: ChartValues, application: str) -> ChartValues:
    """Return the `values` of a service that its models on a further pool can have: without worker groups, which are
    those of the pools of the first service, and without the applications of other models."""
    kept = {key: value for key, value in values.items() if key != "workerGroups"}
    if not isinstance(serve := kept.pop("serve", None), dict):
        # What is wrong here is reported for the first service.
        return kept
    selected = dict(serve)
    for key in ("applications", "customApplications"):
        if isinstance(entries := selected.pop(key, None), dict) and application in entries:
            selected[key] = {application: entries[application]}
    return {**kept, "serve": selected} if selected else kept


def _further(name: str) -> dict[str, object]:
    """Return the keys of a model on a further pool."""
    of_the_name = {"aliases": (), "spill_above": None, "forwarding": "remotes", "shared_prefix_cache_reason": None}
    return {"served_as": ServedAs(model=name), "service": None, **of_the_name}
