"""Build the scrape targets of a cluster from a plan: its services and its gateway. Pure."""

from rayhelm.planner.plan import Plan
from rayhelm.spec.fleet import Fleet
from rayhelm.values.build.release_names import GATEWAY
from rayhelm.values.platform.metrics import Metrics, ScrapeTarget

__all__ = ["metrics_of_plan"]


def metrics_of_plan(cluster: str, plan: Plan, fleet: Fleet) -> Metrics:
    gateway, scraped = plan.gateways.get(cluster), fleet.clusters[cluster].prometheus
    services = {
        name: ScrapeTarget(namespace=service.namespace)
        for name, service in plan.services.items()
        if service.cluster == cluster
    }
    return Metrics(
        services=services,
        gateways={GATEWAY: ScrapeTarget(namespace=gateway.namespace)} if gateway else {},
        prometheus_url=scraped.url if scraped else "",
        scrape_configs=bool(services and scraped and scraped.discovery == "ScrapeConfigs"),
    )
