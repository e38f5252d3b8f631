"""The tables of tenants and versions in `rayhelm plan`."""

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.table import Table

from rayhelm.planner.plan import Plan, RemotePlan, TenantPlan, VersionPlan

__all__ = ["build_tenant_table", "forwarded_names", "joined_names"]


def build_tenant_table(plan: Plan) -> Table:
    """A row for each tenant: what it may call, its limits, its services, and their GPUs with the upgrade surge."""
    urls = ", ".join(f"{gateway.url} ({cluster})" for cluster, gateway in plan.gateways.items())
    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        title=f"gateway: {urls}" if urls else "no gateway",
        title_justify="left",
    )
    table.add_column("tenant", overflow="fold")
    table.add_column("may call", overflow="fold")
    for column in ("requests/min", "concurrency"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("owns", overflow="fold")
    table.add_column("GPUs\n+ upgrade", justify="right", no_wrap=True)
    for name, tenant in plan.tenants.items():
        owned = [plan.services[service] for service in tenant.services]
        baseline = sum(service.gpus for service in owned)
        upgrade_surge = sum(service.upgrade_surge_gpus for service in owned)
        table.add_row(
            name,
            ", ".join(_list_models(tenant)) or "-",
            str(tenant.requests_per_minute) if tenant.models else "-",
            str(tenant.concurrency) if tenant.models else "-",
            ", ".join(tenant.services) or "-",
            f"{baseline:g}{_name_limit(name, plan)} + {upgrade_surge:g}" if owned else "-",
        )
    return table


def _name_limit(tenant: str, plan: Plan) -> str:
    """Return the limit of the tenant, which its ResourceQuota has beside the upgrade surge; empty without one."""
    limit = plan.declared.tenants[tenant].gpus
    return "" if limit is None else f" of {limit:g}"


def _list_models(tenant: TenantPlan) -> Iterator[str]:
    """Models that the tenant may call, each with its pinned version."""
    for model in tenant.models:
        yield f"{model} ({tenant.pinned_versions[model]})" if model in tenant.pinned_versions else model


def joined_names(plan: Plan) -> Iterator[str]:
    """A sentence for each model name that several models serve, with the weight of each version."""
    for gateway in plan.gateways.values():
        for name, versions in gateway.versions.items():
            if sum(len(version.models) for version in versions.values()) <= 1:
                continue
            yield f"{name}: {', '.join(_version(version, found) for version, found in versions.items())}"


def forwarded_names(plan: Plan) -> Iterator[str]:
    """A sentence for each model that a gateway forwards to other clusters, with the way to them."""
    for cluster, gateway in plan.gateways.items():
        for name in gateway.forwarded:
            ways = ", ".join(_describe_way(*found) for found in gateway.remotes.items() if name in found[1].models)
            yield f"{name}: the gateway of {cluster} forwards every request to {ways}"


def _describe_way(other: str, remote: RemotePlan) -> str:
    latency = "unknown" if remote.latency_s is None else f"{remote.latency_s * 1000:.3g} ms"
    price = "unknown" if remote.price_per_gigabyte is None else f"{remote.price_per_gigabyte:.3g} USD/GB"
    return f"{other} (round trip {latency}, traffic {price})"


def _version(name: str, found: VersionPlan) -> str:
    places = " and ".join(f"{model} ({share})" for model, share in found.models.items())
    return f"{name} {found.weight} % by {places}"
