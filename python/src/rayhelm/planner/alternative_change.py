"""The change of the fleet file that makes an alternative the plan, and the plan with it.

A change is a merge patch (RFC 7396): maps are merged, other values replace, and None removes a key.
"""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from rayhelm.catalog import Catalog
from rayhelm.errors import Fix, FleetError
from rayhelm.planner.alternative import Alternative
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.plan import Plan
from rayhelm.planner.planner import plan_fleet
from rayhelm.spec.document import Document
from rayhelm.spec.load import LoadedFleet, parse_fleet

__all__ = ["apply_change", "confirm", "pin_split", "plan_with", "share_load"]

Change = dict[str, Any]

_MOST_CONFIRMED = 30
"""Models of a fleet up to which each alternative is planned: a plan of a large fleet takes seconds."""


def apply_change(data: Any, change: Any) -> Any:
    """Return a value with a merge patch applied; the value itself stays."""
    if not isinstance(change, Mapping):
        return copy.deepcopy(change)
    merged = dict(data) if isinstance(data, Mapping) else {}
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = apply_change(merged.get(key), value)
    return merged


def plan_with(loaded: LoadedFleet, change: Change, known: Catalog | None = None) -> Plan:
    """Plan the fleet with a change. Raises FleetError if it has no plan."""
    document = Document(loaded.document.file, apply_change(loaded.document.data, change), loaded.document.lines)
    return plan_fleet(replace(parse_fleet(document), measured=loaded.measured), known)


def confirm(loaded: LoadedFleet, known: Catalog, model: str, found: Iterable[Alternative]) -> list[Alternative]:
    """Return the alternatives whose price the plan of the changed fleet has too. Others would take GPUs that the plan
    then gives to another model, or break a rule of the fleet. A limit of a tenant that is too low becomes part of the
    change. All of a large fleet are returned as they are."""
    if len(loaded.fleet.models) > _MOST_CONFIRMED:
        return list(found)
    return [done for each in found if (done := _confirm(loaded, known, model, each))]


def _confirm(loaded: LoadedFleet, known: Catalog, model: str, each: Alternative) -> Alternative | None:
    if each.price_per_hour is None:
        return each
    try:
        planned = plan_with(loaded, each.change, known)
    except FleetError as error:
        limits = _find_limits(error)
        if not limits or limits.items() <= each.change.get("tenants", {}).items():
            return None
        needed = ", ".join(f"`tenants.{tenant}.gpus: {keys['gpus']}`" for tenant, keys in limits.items())
        note = "; ".join(part for part in (each.note, f"needs {needed}") if part)
        return _confirm(
            loaded,
            known,
            model,
            each.model_copy(update={"change": apply_change(each.change, {"tenants": limits}), "note": note}),
        )
    added = [name for name in planned.models if name not in loaded.fleet.models]
    prices = [planned.models[name].price_per_hour for name in (model, *added)]
    total = sum(price or 0.0 for price in prices)
    is_same = None not in prices and abs(total - each.price_per_hour) <= 1e-3 * total + 1e-4
    return each if is_same else None


def _find_limits(error: FleetError) -> dict[str, Change]:
    """Return the limits of tenants that would allow the GPUs; nothing if there is another problem."""
    limits: dict[str, Change] = {}
    for problem in error.problems:
        section, _, rest = problem.path.partition(".")
        if section != "tenants" or not rest.endswith(".gpus") or not isinstance(problem.fix, Fix):
            return {}
        limits[rest.removesuffix(".gpus")] = {"gpus": problem.fix.value}
    return limits


def pin_split(written: Mapping[str, Any], candidate: Candidate) -> Change:
    """Return `parallelism` with the split of a candidate, in place of what the fleet file has."""
    split = candidate.split
    keys: Change = dict.fromkeys(written.get("parallelism") or {})
    keys |= {"tensor": split.tp, "pipeline": split.pp}
    if split.dp > 1:
        keys["data"] = split.dp
    if split.has_expert_parallel:
        keys["expert"] = True
    return keys


def share_load(written: Mapping[str, Any], part: float) -> Change:
    """Return the traffic of a model that serves a part of the load; nothing without traffic."""
    traffic = written.get("traffic")
    return {"traffic": {"requestsPerSecond": round(traffic["requestsPerSecond"] * part, 6)}} if traffic else {}
