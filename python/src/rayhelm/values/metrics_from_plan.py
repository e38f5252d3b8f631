"""From a plan to what there is to scrape in a cluster: its services, and its gateway. Pure."""

from rayhelm.planner.plan import Plan
from rayhelm.values.gateway_from_plan import RELEASE
from rayhelm.values.platform.metrics import Metrics, Scraped

__all__ = ["metrics_of_plan"]


def metrics_of_plan(cluster: str, plan: Plan) -> Metrics:
    door = plan.gateways.get(cluster)
    return Metrics(
        services={
            name: Scraped(namespace=service.namespace)
            for name, service in plan.services.items()
            if service.cluster == cluster
        },
        gateways={RELEASE: Scraped(namespace=door.namespace)} if door else {},
    )
