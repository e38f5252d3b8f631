"""The change of the fleet file that makes an alternative the plan, and the plan with it."""

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

from rayhelm.errors import Fix, FleetError
from rayhelm.fleet.merge_patch import apply_change
from rayhelm.planner.alternative import Alternative
from rayhelm.planner.blocked_shares import leave_out_blocked_shares
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.plan import Plan
from rayhelm.planner.planner import plan_fleet
from rayhelm.planner.shape import write_parallelism

__all__ = ["confirm", "pin_split", "plan_with", "share_load"]

Change = dict[str, Any]

_MOST_CONFIRMED = 30
"""Models of a fleet up to which each alternative is planned: a plan of a large fleet takes seconds."""


def plan_with(plan: Plan, change: Change) -> Plan:
    """Plan the fleet of a plan with a change. Raises FleetError if it has no plan."""
    return plan_fleet(plan.source.change(change), plan.facts)


def confirm(plan: Plan, model: str, found: Iterable[Alternative]) -> list[Alternative]:
    """Return the alternatives that the plan of the changed fleet agrees with: in the price of the model, and in the
    saving. Others would take GPUs that the plan then gives to another model, make another model dearer, or break a rule
    of the fleet. A limit of a tenant that is too low becomes part of the change. All of a large fleet are returned as
    they are."""
    if len(plan.source.fleet.models) > _MOST_CONFIRMED:
        return list(found)
    return [done for each in found if (done := _confirm(plan, model, each))]


def _confirm(plan: Plan, model: str, each: Alternative) -> Alternative | None:
    if each.price_per_hour is None:
        return each
    try:
        changed = plan_with(plan, each.change)
    except FleetError as error:
        limits = _find_limits(error)
        if not limits or limits.items() <= each.change.get("tenants", {}).items():
            return None
        needed = ", ".join(f"`tenants.{tenant}.gpus: {keys['gpus']}`" for tenant, keys in limits.items())
        allowed = each.model_copy(update={"change": apply_change(each.change, {"tenants": limits})})
        return _confirm(plan, model, _add_note(allowed, f"needs {needed}"))
    used, planned = leave_out_blocked_shares(plan), leave_out_blocked_shares(changed)
    if not _has_stated_price(used, planned, model, each) or not _has_stated_saving(used, planned, model, each):
        return None
    return _count_blocked_shares(plan, changed, model, _add_saving_of_copies(used, planned, model, each))


def _count_blocked_shares(plan: Plan, changed: Plan, model: str, each: Alternative) -> Alternative | None:
    """Return the alternative with the price of the parts of GPUs that it blocks; None if it then saves nothing. What
    sharing saves is counted in whole GPUs already."""
    before = plan.models[model].blocked_price_per_hour
    after = sum(
        one.blocked_price_per_hour for name, one in changed.models.items() if name == model or name not in plan.models
    )
    if each.price_per_hour is None or each.saving_per_hour is None or not (before or after):
        return each
    saving = each.saving_per_hour if each.kind == "sharing" else each.saving_per_hour + before - after
    if saving <= 0 < each.saving_per_hour:
        return None
    prices = {"price_per_hour": round(each.price_per_hour + after, 4), "saving_per_hour": round(saving, 4)}
    return each.model_copy(update=prices)


def _add_saving_of_copies(plan: Plan, planned: Plan, model: str, each: Alternative) -> Alternative:
    """Return a checkpoint with the saving of all models that it is for, because one change has them all."""
    changed = [name for name in each.change["models"] if name in plan.models]
    if each.kind != "checkpoint" or changed == [model]:
        return each
    before, after = (sum(of.models[name].price_per_hour or 0.0 for name in changed) for of in (plan, planned))
    return _add_note(each, f"the models together cost {before - after:.2f} USD/h less")


def _add_note(each: Alternative, note: str) -> Alternative:
    return each.model_copy(update={"note": "; ".join(part for part in (each.note, note) if part)})


def _has_stated_price(plan: Plan, planned: Plan, model: str, each: Alternative) -> bool:
    """Return whether the model and those that the change adds have the price together."""
    prices = [
        after.price_per_hour for name, after in planned.models.items() if name == model or name not in plan.models
    ]
    total = sum(price or 0.0 for price in prices)
    return None not in prices and abs(total - (each.price_per_hour or 0.0)) <= _get_rounding(total)


def _has_stated_saving(plan: Plan, planned: Plan, model: str, each: Alternative) -> bool:
    """Return whether the fleet saves as much at least, and no model outside the change becomes dearer. The change can
    give or take GPUs of any other model."""
    saved = (plan.models[model].price_per_hour or 0.0) - (each.price_per_hour or 0.0)
    rounding = _get_rounding(saved)
    for name, now in plan.models.items():
        if name == model or now.price_per_hour is None:
            continue
        after = planned.models[name].price_per_hour
        rise = inf if after is None else after - now.price_per_hour
        if name not in each.change.get("models", {}) and rise > _get_rounding(now.price_per_hour):
            return False
        saved -= rise
        rounding += _get_rounding(rise)
    return saved >= (each.saving_per_hour or 0.0) - rounding


def _get_rounding(price: float) -> float:
    """Return the difference up to which two prices are equal, USD per hour."""
    return 1e-3 * abs(price) + 1e-4


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
    return dict.fromkeys(written.get("parallelism") or {}) | write_parallelism(candidate.split.shape)


def share_load(written: Mapping[str, Any], part: float) -> Change:
    """Return the traffic of a model that serves a part of the load; nothing without traffic."""
    traffic = written.get("traffic")
    return {"traffic": {"requestsPerSecond": round(traffic["requestsPerSecond"] * part, 6)}} if traffic else {}
