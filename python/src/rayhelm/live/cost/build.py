"""Build the rows of a period from its usage, with or without the plan of a fleet.

With a fleet, GPUs of a model are its replicas times the GPUs of a replica in the plan, and prices are the plan's.
Without one, GPUs are those that Ray reports, and prices those that the rules of chart `platform` record.
"""

from collections.abc import Iterator, Mapping

from rayhelm.deploy.compose.gpu_units import GpuUnit
from rayhelm.fleet.nearest import did_you_mean
from rayhelm.live.cost.figures import PER_UNIT, add_figures, compare, complete, plan_figures
from rayhelm.live.cost.planned import PlannedModel, PlannedService
from rayhelm.live.cost.report import CostPeriod, CostRow, Figures, Kind
from rayhelm.live.cost.tenants import add_tenants, divide_row
from rayhelm.live.cost.usage import GroupUsage, Key, Usage

__all__ = ["build_period"]

_NEGLIGIBLE = 0.01
"""GPU-hours."""
_LLM = ("LLMServer:", "DPServer:")
_NO_PRICE = "Prometheus has no `rayhelm:gpu_price:dollars_per_hour` of these GPUs"
_SHARED = "several models share the GPUs of this service; give the fleet file to divide them"


def build_period(usage: Usage, services: Mapping[str, PlannedService] | None) -> CostPeriod:
    """Build all rows. `services`: those of the fleet; None without one. `usage` has data."""
    assert usage.data_from
    rows = list(_list_measured(usage) if services is None else _list_planned(usage, services))
    return CostPeriod(
        month=usage.period.month,
        start=usage.period.start,
        end=usage.period.end,
        hours=usage.period.hours,
        hours_with_data=usage.hours_with_data,
        data_from=usage.data_from,
        rows=tuple(rows),
        total=_add_rows(rows),
    )


# -- with a fleet ----------------------------------------------------------------------------------------------------


def _list_planned(usage: Usage, services: Mapping[str, PlannedService]) -> Iterator[CostRow]:
    for service in services.values():
        found = [key for key in usage.services if key[2] == service.name and key[1] in ("", service.namespace)]
        if not found:
            yield from (_build_missing(model, service, usage) for model in service.models)
        for key in found:
            rows = [_build_model(model, service, key, usage) for model in service.models]
            yield from rows
            yield from _build_free(service, key, rows, usage)


def _build_missing(model: PlannedModel, service: PlannedService, usage: Usage) -> CostRow:
    hint = did_you_mean(service.name, sorted({key[2] for key in usage.services} - {""}))
    reason = f"Prometheus has no series of service `{service.name}` in namespace `{service.namespace}`"
    return CostRow(
        kind="model",
        namespace=service.namespace,
        service=service.name,
        model=model.served_as,
        actual=complete(None, None),
        planned=plan_figures(model, usage.hours_with_data),
        reasons=(f"{reason}; {hint}" if hint else reason,),
    )


def _build_model(model: PlannedModel, service: PlannedService, key: Key, usage: Usage) -> CostRow:
    deployment, label = (*key, model.application, model.deployment), (*key, model.served_as)
    replica_hours = usage.replica_hours.get(deployment, 0.0)
    busy_hours = min(usage.busy_replica_hours.get(deployment, 0.0), replica_hours)
    of_replica = None if model.price_per_hour is None else model.price_per_hour / model.replicas
    reasons = [model.missing_price] if of_replica is None else []
    twins = [other.name for other in service.models if other.served_as == model.served_as]
    counts: list[float | None] = [part.get(label) for part in (usage.requests, usage.input_tokens, usage.output_tokens)]
    if len(twins) > 1:
        counts = [None, None, None]
        reasons.append(f"{' and '.join(twins)} have the same served model name, so their tokens cannot be divided")
    actual = complete(
        replica_hours * model.gpus / model.replicas,
        None if of_replica is None else replica_hours * of_replica,
        *counts,
    )
    planned = plan_figures(model, usage.hours_with_data)
    idle_cost = None if of_replica is None else (replica_hours - busy_hours) * of_replica
    return CostRow(
        kind="model",
        cluster=key[0],
        namespace=key[1] or service.namespace,
        service=service.name,
        model=model.served_as,
        actual=actual,
        idle_cost=idle_cost,
        planned=planned,
        difference_percent=compare(actual, planned),
        reasons=tuple(reasons),
        tenants=divide_row(actual, idle_cost, label, usage),
    )


def _build_free(service: PlannedService, key: Key, rows: list[CostRow], usage: Usage) -> Iterator[CostRow]:
    """Yield what the pods have beyond the replicas: free GPUs, and those of replicas that are not healthy yet."""
    groups = {group[3]: used for group, used in usage.groups.items() if group[:3] == key and used.gpu_hours}
    if not groups:
        return
    units = {name: service.units.get(name, GpuUnit(1.0, None)) for name in groups}
    prices = {name: unit.price for name, unit in units.items()}
    unknown = sorted(name or "without a label" for name, price in prices.items() if price is None)
    allocated_gpu_hours = sum(used.gpu_hours * units[name].gpus for name, used in groups.items())
    gpu_hours = allocated_gpu_hours - sum(row.actual.gpu_hours or 0 for row in rows)
    costs = [row.actual.cost for row in rows]
    cost = None
    if not unknown and None not in costs:
        allocated = sum(used.gpu_hours * (prices[name] or 0.0) for name, used in groups.items())
        cost = max(0.0, allocated - sum(each or 0.0 for each in costs))
    if gpu_hours < _NEGLIGIBLE:
        return
    yield CostRow(
        kind="free",
        cluster=key[0],
        namespace=key[1] or service.namespace,
        service=service.name,
        actual=complete(gpu_hours, cost),
        idle_cost=cost,
        reasons=() if cost is not None else (f"the fleet has no price of worker group {', '.join(unknown)}",),
    )


# -- without a fleet -------------------------------------------------------------------------------------------------


def _list_measured(usage: Usage) -> Iterator[CostRow]:
    for key in usage.services:
        used = _add_groups([group for name, group in usage.groups.items() if name[:3] == key])
        models = sorted(_list_models(usage, key))
        others = {name[4] for name in usage.replica_hours if name[:3] == key and not _is_of_llm(name[4])}
        is_alone = len(models) == 1 and not others
        yield from (_build_measured(usage, key, model, used if is_alone else None) for model in models)
        if not is_alone and used.gpu_hours - used.free_gpu_hours > 0:
            yield _build_part("shared", key, used, used.gpu_hours - used.free_gpu_hours, used.cost - used.free_cost)
        if used.free_gpu_hours > 0:
            yield _build_part("free", key, used, used.free_gpu_hours, used.free_cost)


def _list_models(usage: Usage, key: Key) -> set[str]:
    """Served model names: of the engine's counters, and of deployments whose engine has none yet."""
    parts = (usage.requests, usage.input_tokens, usage.output_tokens)
    counted = {name[3] for part in parts for name in part if name[:3] == key}
    deployments = [name[4] for name in usage.replica_hours if name[:3] == key]
    deployed = {name.partition(":")[2] for name in deployments if name.startswith(_LLM)}
    return counted | (deployed - {_clean(model) for model in counted})


def _clean(model: str) -> str:
    """The model in the name of its deployment."""
    return model.replace("/", "--").replace(".", "_")


def _is_of_llm(deployment: str) -> bool:
    """Return whether a deployment is one of Ray Serve LLM: the engine, or the ingress, which has no GPU."""
    return deployment.startswith(_LLM) or deployment.startswith("OpenAiIngress")


def _build_measured(usage: Usage, key: Key, model: str, used: GroupUsage | None) -> CostRow:
    counts = [part.get((*key, model)) for part in (usage.requests, usage.input_tokens, usage.output_tokens)]
    names = dict(zip(("cluster", "namespace", "service"), key, strict=True))
    if used is None:
        shared = complete(None, None, *counts)
        tenants = divide_row(shared, None, (*key, model), usage)
        return CostRow(kind="model", **names, model=model, actual=shared, reasons=(_SHARED,), tenants=tenants)
    deployments = [name for name in usage.replica_hours if name[:3] == key and name[4].startswith(_LLM)]
    replica_hours = sum(usage.replica_hours[name] for name in deployments)
    busy_hours = sum(usage.busy_replica_hours.get(name, 0.0) for name in deployments)
    reason = _explain_missing_price(used)
    cost = None if reason else used.cost - used.free_cost
    idle = max(0.0, 1 - busy_hours / replica_hours) if replica_hours else None
    actual = complete(used.gpu_hours - used.free_gpu_hours, cost, *counts)
    idle_cost = None if cost is None or idle is None else cost * idle
    return CostRow(
        kind="model",
        **names,
        model=model,
        actual=actual,
        idle_cost=idle_cost,
        reasons=(reason,) if reason else (),
        tenants=divide_row(actual, idle_cost, (*key, model), usage),
    )


def _build_part(kind: Kind, key: Key, used: GroupUsage, gpu_hours: float, cost: float) -> CostRow:
    reason = _explain_missing_price(used)
    priced = None if reason else cost
    return CostRow(
        kind=kind,
        cluster=key[0],
        namespace=key[1],
        service=key[2],
        actual=complete(gpu_hours, priced),
        idle_cost=priced if kind == "free" else None,
        reasons=(reason,) if reason else (),
    )


def _explain_missing_price(used: GroupUsage) -> str:
    missing = used.gpu_hours - used.priced_gpu_hours
    if missing <= 1e-6:
        return ""
    return f"{_NO_PRICE} for {missing:.1f} of {used.gpu_hours:.1f} GPU-hours; give the fleet file"


def _add_groups(groups: list[GroupUsage]) -> GroupUsage:
    total = GroupUsage()
    for group in groups:
        for name, value in vars(group).items():
            setattr(total, name, getattr(total, name) + value)
    return total


# -- total -----------------------------------------------------------------------------------------------------------


def _add_rows(rows: list[CostRow]) -> CostRow:
    """Return the sum of all rows. Its cost per request and token counts free GPUs too, and needs all costs."""
    idle = [row.idle_cost for row in rows if row.idle_cost is not None]
    planned = [row.planned for row in rows if row.planned]
    missing = sum(bool(row.actual.gpu_hours) and row.actual.cost is None for row in rows)
    actual = _add_parts([row.actual for row in rows])
    plan = _add_parts(planned) if planned else None
    is_complete = not missing and all(part.cost is not None for part in planned)
    return CostRow(
        kind="total",
        actual=actual,
        idle_cost=sum(idle) if idle else None,
        planned=plan,
        difference_percent=compare(actual, plan) if plan and is_complete else None,
        reasons=(f"without the cost of {missing} row{'s' if missing > 1 else ''}",) if missing else (),
        tenants=add_tenants(rows, None if missing else actual.cost),
    )


def _add_parts(parts: list[Figures]) -> Figures:
    is_complete = all(part.cost is not None for part in parts if part.gpu_hours)
    total = add_figures(parts)
    return total if is_complete else total.model_copy(update=dict.fromkeys(PER_UNIT))
