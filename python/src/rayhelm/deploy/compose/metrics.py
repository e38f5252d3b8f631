"""Build the scrape targets of a cluster from a plan: its services and its gateway. Pure."""

from rayhelm.deploy.compose.release_names import GATEWAY
from rayhelm.deploy.values.platform.metrics import Metrics, ScrapeTarget
from rayhelm.deploy.values.platform.scraping import PlatformScraping
from rayhelm.fleet.pools import Cluster
from rayhelm.planner.plan import Plan

__all__ = ["metrics_of_plan"]


def metrics_of_plan(cluster: str, plan: Plan) -> Metrics:
    gateway, prometheus = plan.gateways.get(cluster), plan.declared.clusters[cluster].prometheus
    services = {
        name: ScrapeTarget(namespace=service.namespace)
        for name, service in plan.services.items()
        if service.cluster == cluster
    }
    return Metrics(
        services=services,
        gateways={GATEWAY: ScrapeTarget(namespace=gateway.namespace)} if gateway else {},
        prometheus_url=prometheus.url if prometheus else "",
        scraping=_build_scraping(plan.declared.clusters[cluster], has_services=bool(services)),
    )


def _build_scraping(cluster: Cluster, *, has_services: bool) -> PlatformScraping:
    namespace = cluster.kuberay_operator.namespace
    if not cluster.prometheus or not has_services:
        return PlatformScraping(kuberay_namespace=namespace)
    kind, labels = cluster.prometheus.scraping, dict(cluster.prometheus.scrape_labels)
    return PlatformScraping(kind=kind, labels=labels, kuberay_namespace=namespace)
