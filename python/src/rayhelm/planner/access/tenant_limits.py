"""GPU limits of tenants, and parts of GPUs that stay unused."""

from collections.abc import Iterable, Iterator, Mapping

from rayhelm.errors import Fix, Problem
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.access.services import count_service_gpus
from rayhelm.planner.placement.inventory import PoolInventory
from rayhelm.planner.plan import Plan

__all__ = ["find_exceeded_limits", "warn_idle_shares"]


def warn_idle_shares(inventories: Iterable[PoolInventory]) -> Iterator[str]:
    """Yield warnings: parts of GPUs that no model uses. Pods request whole GPUs, and services do not share them."""
    for inventory in inventories:
        for service, left in inventory.idle_shares.items():
            verb = "are" if left > 1 else "is"
            cost = (
                "" if inventory.price is None else f" ({left * inventory.price:.2f} USD/h, in the prices of its models)"
            )
            yield (
                f"pool `{inventory.name}`: {left:g} GPU{'s' if left > 1 else ''} allocated to service `{service}`"
                f" {verb} unused{cost}. Only models of this service can use the rest of its GPUs"
            )


def find_exceeded_limits(plan: Plan, inventories: Mapping[str, PoolInventory], fleet: Fleet) -> Iterator[Problem]:
    """Yield each tenant whose services use more GPUs than it may. Whole GPUs count, as in the ResourceQuota."""
    for name, tenant in fleet.tenants.items():
        services = [service for service, declared in fleet.services.items() if declared.tenant == name]
        used = sum(count_service_gpus(service, inventory) for service in services for inventory in inventories.values())
        if tenant.gpus is None or used <= tenant.gpus:
            continue
        parts = ", ".join(
            f"{model.model} {model.gpus:g}" for model in plan.models.values() if model.service in services
        )
        yield problem_at(
            ("tenants", name, "gpus"),
            f"the services of tenant `{name}` use {used} GPU{'s' if used != 1 else ''} ({parts}), and its limit"
            f" is {tenant.gpus:g}",
            Fix(value=used),
        )
