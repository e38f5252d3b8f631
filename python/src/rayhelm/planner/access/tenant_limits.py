"""Who holds cards: a tenant's own services stay within its bound, and a card of one service is nobody else's."""

from collections.abc import Iterable, Iterator

from rayhelm.errors import FleetError
from rayhelm.planner.access.services import count_service_gpus
from rayhelm.planner.placement.inventory import PoolInventory
from rayhelm.planner.plan import Plan
from rayhelm.spec.load import LoadedFleet

__all__ = ["check_tenant_limits", "warn_idle_shares"]


def warn_idle_shares(inventories: Iterable[PoolInventory]) -> Iterator[str]:
    """Parts of cards that are held and not planned for: pods take whole cards, and services do not share them."""
    for inventory in inventories:
        for service, left in inventory.idle_shares.items():
            yield (
                f"pool `{inventory.name}`: {left:g} GPU{'s' if left > 1 else ''} allocated to service `{service}` stay"
                f" unused. Only models of service `{service}` can use them"
            )


def check_tenant_limits(plan: Plan, inventories: dict[str, PoolInventory], loaded: LoadedFleet) -> None:
    """Raise FleetError where a plan holds more than its owner may. Whole cards count: that is what the quota sees."""
    problems = []
    for name, tenant in loaded.fleet.tenants.items():
        services = [service for service, declared in loaded.fleet.services.items() if declared.tenant == name]
        held = sum(count_service_gpus(service, inventory) for service in services for inventory in inventories.values())
        if tenant.gpus is None or held <= tenant.gpus:
            continue
        parts = ", ".join(
            f"{model.model} {model.gpus:g}" for model in plan.models.values() if model.service in services
        )
        problems.append(
            loaded.document.problem(
                ("tenants", name, "gpus"),
                f"the services of `{name}` hold {held} GPUs in the plan ({parts}), and it may hold {tenant.gpus:g}",
                f"gpus: {held}",
            )
        )
    if problems:
        raise FleetError(problems)
