"""The Prometheus of a cluster: who scrapes, and whom autoscaling asks."""

from typing import Literal

from pydantic import Field

from rayhelm.spec.base import Record
from rayhelm.spec.labels import Labels
from rayhelm.spec.names import Name

__all__ = ["Prometheus"]


class Prometheus(Record):
    """A Prometheus that is there already. It scrapes every service and the gateway."""

    url: str = Field(
        pattern=r"^https?://[^\s/]+(/\S*)?$", max_length=253, examples=["http://prometheus-operated.monitoring:9090"]
    )
    """Its address, as pods of the cluster call it."""
    namespace: Name = "monitoring"
    """Namespace of its pods: nobody else may scrape."""
    discovery: Literal["PodMonitors", "ScrapeConfigs"] = "PodMonitors"
    """How it learns what to scrape: by PodMonitors, where the Prometheus operator runs, or by a ConfigMap of the chart
    `platform` that you mount into it."""
    pod_monitor_labels: Labels = Field(default={}, examples=[{"release": "kube-prometheus-stack"}])
    """Labels by which it finds PodMonitors."""
