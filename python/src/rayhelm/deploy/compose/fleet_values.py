"""Values of all charts, made from a plan."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rayhelm.deploy.compose.allow_lists import find_narrow_allow_lists
from rayhelm.deploy.compose.platform import build_platform_values
from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.deploy.values.platform import PlatformValues
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.errors import Diagnostics, FleetError, Problem
from rayhelm.planner.plan import Plan

if TYPE_CHECKING:
    from rayhelm.deploy.values.gateway import GatewayValues
    from rayhelm.deploy.values.tenant import TenantValues

__all__ = ["FleetValues", "compose_values", "preview_values"]


@dataclass(frozen=True)
class FleetValues:
    """Values of each release."""

    services: Mapping[str, RayServiceValues]
    platforms: Mapping[str, PlatformValues]
    """By cluster."""
    gateways: "Mapping[str, GatewayValues]"
    """By cluster."""
    tenants: "Mapping[tuple[str, str], TenantValues]"
    """By cluster and tenant."""


def compose_values(plan: Plan) -> FleetValues:
    """Make the values of all charts. Raises FleetError with the problems of all of them."""
    from rayhelm.deploy.compose.gateway import build_gateways
    from rayhelm.deploy.compose.tenant import build_tenant_values

    found = Diagnostics()
    services = found.run(lambda: build_ray_service_values(plan))
    platforms = found.run(lambda: build_platform_values(plan, services or {}))
    # The others count the pods of the services.
    gateways = found.run(lambda: build_gateways(plan, services)) if services is not None else None
    if services is None or gateways is None:
        raise FleetError(found.problems)
    tenants = found.run(lambda: build_tenant_values(plan, services, gateways))
    if platforms is None or tenants is None:
        raise FleetError(found.problems)
    found.add(find_narrow_allow_lists(plan, services, tenants, platforms))
    found.check()
    return FleetValues(services, platforms, gateways, tenants)


def preview_values(plan: Plan) -> tuple[Problem, ...]:
    """Return the problems of the values. Those of gateways and tenants are made only if the fleet overrides some, since
    nothing else can make them wrong, and their types take long to import."""
    found = Diagnostics()
    if _has_overrides(plan):
        found.run(lambda: compose_values(plan))
    else:
        services = found.run(lambda: build_ray_service_values(plan)) or {}
        found.run(lambda: build_platform_values(plan, services))
    return tuple(found.problems)


def _has_overrides(plan: Plan) -> bool:
    gateways = any(cluster.gateway.values for cluster in plan.declared.clusters.values())
    return gateways or any(tenant.values for tenant in plan.declared.tenants.values())
