"""Overrides in the plan: what the fleet file sets in charts, and what has no effect."""

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.overrides import Override, list_overrides
from rayhelm.planner.plan import ModelPlan, OverridePlan

__all__ = ["plan_overrides", "warn_unused_overrides"]


def plan_overrides(fleet: Fleet, models: Iterable[ModelPlan]) -> tuple[OverridePlan, ...]:
    """List each value that an override sets. Services on further pools have the values of the first one."""
    further = {model.service for model in models if model.model != model.written}
    return tuple(
        OverridePlan(part=".".join(map(str, override.path[:-1])), chart=override.chart, key=key, value=value)
        for override in list_overrides(fleet)
        if override.path[0] != "services" or override.name not in further
        for key, value in _list_leaves(override.values, "workerGroups.*" if override.path[0] == "pools" else "")
    )


def warn_unused_overrides(models: Mapping[str, ModelPlan], gateways: Container[str], fleet: Fleet) -> Iterator[str]:
    """Yield warnings about overrides of releases that are not rendered. They are not checked either."""
    for override in list_overrides(fleet):
        if override.values and (why := _explain_unused(override, models, gateways, fleet)):
            yield f"`{'.'.join(map(str, override.path))}` has no effect and was not checked: {why}"


def _explain_unused(override: Override, models: Mapping[str, ModelPlan], gateways: Container[str], fleet: Fleet) -> str:
    """Return why no release has the values; empty if one has them."""
    if override.chart == "platform":
        used = override.name in {pool.cluster for pool in fleet.pools.values()}
        return "" if used else "the cluster has no pool"
    if override.chart == "gateway":
        return "" if override.name in gateways else "the cluster has no gateway"
    if override.chart == "tenant":
        owns = any(service.tenant == override.name for service in fleet.services.values())
        return "" if owns else "the tenant owns no service, so it has no namespace"
    if override.path[0] == "pools":
        return "" if override.name in {model.pool for model in models.values()} else "no model is on the pool"
    return ""


def _list_leaves(values: Mapping[str, Any], key: str) -> Iterator[tuple[str, Any]]:
    for step, value in values.items():
        here = f"{key}.{step}" if key else str(step)
        if isinstance(value, Mapping) and value:
            yield from _list_leaves(value, here)
        else:
            yield here, value
