"""How Prometheus finds the pods of a release."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Values
from rayhelm.deploy.values.common.labels import Labels

__all__ = ["Interval", "Scraping"]

Interval = Annotated[str, Field(pattern=r"^[0-9]+(ms|s|m)$")]


class Scraping(Values):
    """How Prometheus finds the pods. Every kind gives the series the same labels."""

    kind: Literal["None", "PodMonitor", "ScrapeConfig", "Annotations"] = "None"
    """`PodMonitor` and `ScrapeConfig` are objects of the Prometheus operator. `Annotations` are `prometheus.io/scrape`
    of the pods, which name one port and one path of a pod. `None`: nothing, or the ConfigMap of the chart `platform`.
    With two kinds at once every request would count twice."""
    labels: Labels = {}
    """Labels by which your Prometheus selects the object."""
    interval: Interval = "15s"
    """Time between scrapes. Keep it below 20 s: vLLM drops its gauges 20 s after the engine becomes idle. With
    `Annotations` the configuration of Prometheus sets it."""
