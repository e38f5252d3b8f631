"""The Prometheus of a cluster: it scrapes the services, and autoscaling queries it."""

from typing import Literal

from pydantic import Field

from rayhelm.spec.base import Record
from rayhelm.spec.labels import Labels
from rayhelm.spec.names import Name

__all__ = ["Prometheus"]


class Prometheus(Record):
    """An existing Prometheus. It scrapes every service and the gateway."""

    url: str = Field(
        pattern=r"^https?://[^\s/]+(/\S*)?$", max_length=253, examples=["http://prometheus-operated.monitoring:9090"]
    )
    """Its URL inside the cluster."""
    namespace: Name = "monitoring"
    """Namespace of its pods; only they may scrape."""
    discovery: Literal["PodMonitors", "ScrapeConfigs"] = "PodMonitors"
    """How it finds its targets: by PodMonitors, which need the Prometheus operator, or by a ConfigMap of the chart
    `platform` that you mount into it."""
    pod_monitor_labels: Labels = Field(default={}, examples=[{"release": "kube-prometheus-stack"}])
    """Labels by which it finds PodMonitors."""
