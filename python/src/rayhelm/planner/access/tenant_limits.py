"""Who holds cards: a tenant's own services stay within its bound, and a card of one service is nobody else's."""

from collections.abc import Iterable, Iterator

from rayhelm.errors import FleetError
from rayhelm.planner.access.services import cards_of
from rayhelm.planner.placement.inventory import PoolSite
from rayhelm.planner.plan import Plan
from rayhelm.spec.load import LoadedFleet

__all__ = ["idle_shares", "owners_within_bounds"]


def idle_shares(sites: Iterable[PoolSite]) -> Iterator[str]:
    """Parts of cards that are held and not planned for: pods take whole cards, and services do not share them."""
    for site in sites:
        for service, left in site.idle_shares.items():
            yield (
                f"{left:g} card{'s' if left > 1 else ''} of pool `{site.name}` lie idle beside the models of service"
                f" `{service}`: only models of the same service can use them"
            )


def owners_within_bounds(plan: Plan, sites: dict[str, PoolSite], loaded: LoadedFleet) -> None:
    """Raise FleetError where a plan holds more than its owner may. Whole cards count: that is what the quota sees."""
    problems = []
    for name, tenant in loaded.fleet.tenants.items():
        services = [service for service, declared in loaded.fleet.services.items() if declared.tenant == name]
        held = sum(cards_of(service, site) for service in services for site in sites.values())
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
