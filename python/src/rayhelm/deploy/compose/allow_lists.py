"""Allow-lists of tenants that would refuse what the charts themselves render. Pure."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rayhelm.deploy.values.platform import PlatformValues
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.errors import Fix, Problem
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.plan import Plan

if TYPE_CHECKING:
    from rayhelm.deploy.values.tenant import TenantValues

__all__ = ["find_narrow_allow_lists"]


def find_narrow_allow_lists(
    plan: Plan,
    services: Mapping[str, RayServiceValues],
    tenants: "Mapping[tuple[str, str], TenantValues]",
    platforms: Mapping[str, PlatformValues],
) -> Iterator[Problem]:
    """Yield a problem for each list of a tenant that lacks what its services have. The quota of PriorityClasses holds
    without a policy too."""
    for (cluster, tenant), values in tenants.items():
        own = [
            each
            for name, each in services.items()
            if (plan.services[name].cluster, plan.services[name].tenant) == (cluster, tenant)
        ]
        path = ("tenants", tenant, "values")
        allowed = [*values.quota.allowed_priority_classes, *values.quota.priority_classes]
        if missing := sorted({name for each in own for name in _list_classes(each)} - {*allowed}):
            yield problem_at(
                (*path, "quota", "allowedPriorityClasses"),
                f"it lacks {', '.join(missing)}, which pods of services of `{tenant}` have: they would be refused",
                Fix(value=[*values.quota.allowed_priority_classes, *missing]),
            )
        if platforms[cluster].policies.tenant_network.action != "Deny":
            continue
        open_to = values.network_policy.allowed.namespaces
        known = {values.namespace.name or tenant, *(each.partition(":")[0] for each in open_to)}
        if missing := sorted({name for each in own for name in _list_namespaces(each)} - known):
            yield problem_at(
                (*path, "networkPolicy", "allowed", "namespaces"),
                f"it lacks {', '.join(missing)}, to which NetworkPolicies of services of `{tenant}` open connections:"
                " they would be refused",
                Fix(value=[*open_to, *missing]),
            )


def _list_classes(values: RayServiceValues) -> Iterator[str]:
    yield from (each for each in [values.head.priority_class_name] if each)
    yield from (each.priority_class_name for each in values.worker_groups.values() if each.priority_class_name)


def _list_namespaces(values: RayServiceValues) -> Iterator[str]:
    """Namespaces of peers that every release has."""
    policy = values.network_policy
    if not policy.enabled:
        return
    peers = [policy.operator, policy.dns.peer, *policy.allowed_gateways.values()]
    yield from (peer.namespace for peer in peers if peer.namespace)
