"""Build how Prometheus finds the pods of a release. Pure."""

from rayhelm.deploy.values.common.scraping import Scraping
from rayhelm.fleet.prometheus import Prometheus

__all__ = ["build_scraping"]


def build_scraping(prometheus: Prometheus | None) -> Scraping:
    """Return the values of a chart. With `ConfigMap` the chart `platform` alone has the configuration."""
    if not prometheus or prometheus.scraping == "ConfigMap":
        return Scraping()
    return Scraping(kind=prometheus.scraping, labels=dict(prometheus.scrape_labels))
