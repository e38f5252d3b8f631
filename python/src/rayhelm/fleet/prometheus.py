"""The Prometheus of a cluster: it scrapes the services, and autoscaling queries it."""

from typing import Literal, Self

from pydantic import Field, model_validator

from rayhelm.errors import Fix
from rayhelm.fleet.base import PublicUrl, Record, Refusal
from rayhelm.fleet.labels import Labels
from rayhelm.fleet.names import Name

__all__ = ["Prometheus"]


class Prometheus(Record):
    """An existing Prometheus. It scrapes every service and the gateway."""

    url: PublicUrl = Field(
        pattern=r"^https?://[^\s/]+(/\S*)?$", max_length=253, examples=["http://prometheus-operated.monitoring:9090"]
    )
    """Its URL inside the cluster."""
    namespace: Name = "monitoring"
    """Namespace of its pods; only they may scrape."""
    scraping: Literal["PodMonitor", "ScrapeConfig", "ConfigMap", "Annotations"] = "PodMonitor"
    """How it finds its targets: by PodMonitors or ScrapeConfigs, which need the Prometheus operator; by a ConfigMap of
    the chart `platform` that you mount into it; or by the annotations `prometheus.io/scrape`, which have no metrics of
    tenants and of Ray's autoscaler."""
    scrape_labels: Labels = Field(default={}, examples=[{"release": "kube-prometheus-stack"}])
    """Labels by which it finds PodMonitors or ScrapeConfigs."""
    rules: Literal["None", "PrometheusRule", "ConfigMap"] = "None"
    """Alert and recording rules: objects of the Prometheus operator, or rule files in a ConfigMap that you mount into
    it. They need `runbookUrl`."""
    rule_labels: Labels = Field(default={}, examples=[{"release": "kube-prometheus-stack"}])
    """Labels by which it finds PrometheusRules."""
    cluster_label: str | None = Field(
        default=None, pattern=r"^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$", max_length=63, examples=["edge"]
    )
    """Value of the label `cluster` of the series, if this Prometheus has series of several clusters. Leave it out if
    `cluster` is an external label, which only the remote storage sees."""
    runbook_url: PublicUrl | None = Field(
        default=None,
        pattern=r"^https?://[^\s]+[^/\s]$",
        max_length=253,
        examples=["https://git.example.com/platform/runbooks"],
    )
    """URL at which you publish the runbooks. Each alert links to its page there."""

    @model_validator(mode="after")
    def _check_scrape_labels(self) -> Self:
        if self.scrape_labels and self.scraping not in ("PodMonitor", "ScrapeConfig"):
            fix = Fix("scraping", "PodMonitor", "or remove `scrapeLabels`")
            raise Refusal(f"`scrapeLabels` select objects, and `scraping: {self.scraping}` creates none", fix)
        return self

    @model_validator(mode="after")
    def _check_runbooks(self) -> Self:
        if self.rules != "None" and not self.runbook_url:
            fix = Fix(
                "runbookUrl",
                "https://git.example.com/platform/runbooks",
                "where you publish the runbooks",
            )
            raise Refusal("`rules` without `runbookUrl`: each alert links to its runbook", fix)
        return self
