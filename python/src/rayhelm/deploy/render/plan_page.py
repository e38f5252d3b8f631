"""Write plan.md: the plan as a page for review."""

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files

from rayhelm.deploy.markdown import escape_texts
from rayhelm.deploy.values.tenant import TenantValues
from rayhelm.planner.alternative import Alternative
from rayhelm.planner.plan import ModelPlan, Plan

__all__ = ["plan_page"]


def plan_page(
    plan: Plan,
    tenants: Mapping[tuple[str, str], TenantValues],
    alternatives: Mapping[str, Sequence[Alternative]],
) -> str:
    """Return the page; `tenants` by cluster and name, because their quotas are in the values. `alternatives`: other
    shapes by model; empty without the section of them."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=escape_texts)
    environment.filters["money"] = _format_money
    environment.filters["shape"] = _format_shape
    environment.filters["ms"] = _format_ms
    template = files("rayhelm").joinpath("data/templates/plan.md.j2").read_text(encoding="utf-8")
    quotas = list(_list_quotas(plan, tenants))
    page = environment.from_string(template).render(plan=plan, quotas=quotas, alternatives=alternatives)
    return page.rstrip() + "\n"


def _list_quotas(plan: Plan, tenants: Mapping[tuple[str, str], TenantValues]) -> Iterator[dict[str, object]]:
    """Yield a row for each GPU resource."""
    for (cluster, tenant), values in tenants.items():
        services = [name for name in plan.tenants[tenant].services if plan.services[name].cluster == cluster]
        for resource, quota in values.quota.gpus.items():
            yield {
                "tenant": tenant,
                "cluster": cluster,
                "namespace": values.namespace.name or tenant,
                "services": services,
                "resource": resource,
                "planned": quota.planned,
                "baseline": quota.planned if quota.baseline is None else quota.baseline,
                "upgrade_surge": quota.upgrade_surge,
            }


def _format_money(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def _format_ms(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds * 1000:.0f}" if seconds >= 0.01 else f"{seconds * 1000:.2g}"


def _format_shape(model: ModelPlan) -> str:
    """Describe the split: `TP 8 x PP 4`, or the share of a GPU."""
    if model.gpu_fraction < 1:
        return f"{model.gpu_fraction:g} of a GPU"
    if model.gpus_per_replica == 1:
        return "1 GPU"
    return model.split
