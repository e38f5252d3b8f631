"""Build the scrape targets of a cluster from a plan: its services and its gateway. Pure."""

from rayhelm.planner.plan import Plan
from rayhelm.spec.fleet import Fleet
from rayhelm.spec.prometheus import Prometheus
from rayhelm.values.build.release_names import GATEWAY
from rayhelm.values.platform.metrics import Metrics, ScrapeTarget
from rayhelm.values.platform.scraping import PlatformScraping

__all__ = ["metrics_of_plan"]


def metrics_of_plan(cluster: str, plan: Plan, fleet: Fleet) -> Metrics:
    gateway, prometheus = plan.gateways.get(cluster), fleet.clusters[cluster].prometheus
    services = {
        name: ScrapeTarget(namespace=service.namespace)
        for name, service in plan.services.items()
        if service.cluster == cluster
    }
    return Metrics(
        services=services,
        gateways={GATEWAY: ScrapeTarget(namespace=gateway.namespace)} if gateway else {},
        prometheus_url=prometheus.url if prometheus else "",
        scraping=_build_scraping(prometheus) if prometheus and services else PlatformScraping(),
    )


def _build_scraping(prometheus: Prometheus) -> PlatformScraping:
    return PlatformScraping(kind=prometheus.scraping, labels=dict(prometheus.scrape_labels))
