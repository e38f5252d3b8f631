"""Metrics that scale things: what Prometheus scrapes, which numbers Kubernetes is told, and what they scale."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.values.common.base import Name, Values
from rayhelm.values.platform.adapter import PrometheusAdapter

__all__ = ["Metrics", "ScrapeTarget"]

RuleName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=63)]
SeriesName = Annotated[str, Field(pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$")]
Kind = Annotated[str, Field(pattern=r"^[A-Z][A-Za-z]*$")]
Count = Annotated[int, Field(ge=1)]
Amount = Annotated[float, Field(ge=0)]


class ScrapeTarget(Values):
    """Something whose pods Prometheus scrapes, by the PodMonitor of its own chart or by `scrapeConfigs`."""

    namespace: Name
    """Its namespace."""


class MetricRule(Values):
    """One more number, of metrics of the catalog (rayhelm/data/metrics)."""

    series: Annotated[list[SeriesName], Field(min_length=1)]
    """Names of metrics; several gauges or counters are added up. A histogram's is without `_bucket`."""
    aggregate: Literal["Sum", "Max", "Rate", "Quantile"]
    """`Sum` and `Max` of gauges, `Rate` per second of counters, `Quantile` of a histogram."""
    quantile: Annotated[float, Field(gt=0, lt=1)] = 0.95
    """With `Quantile`."""


class ScaleTarget(Values):
    """What is scaled."""

    kind: Kind = "Deployment"
    """`Deployment`, `StatefulSet` or `ReplicaSet`: an object with a scale subresource."""
    name: Name
    """Its name, in the service's namespace."""


class MetricAutoscaler(Values):
    """Scales a workload of yours by a number of a service, in that service's namespace."""

    kind: Literal["HPA", "KEDA"] = "HPA"
    """`HPA` reads the adapter; `KEDA` asks Prometheus itself."""
    target: ScaleTarget
    """What is scaled."""
    service: Name
    """Whose number it is; one of `services`."""
    metric: RuleName
    """Name of a rule: `rayhelm_queue_length`, `rayhelm_ttft_seconds`, `rayhelm_kv_cache_usage`, or one of `rules`."""
    average_value: Amount = 0
    """What it aims at for each pod of the target; 0 for `value`."""
    value: Amount = 0
    """What it aims at however many pods there are; 0 for `averageValue`."""
    min_replicas: Count = 1
    """Fewest pods."""
    max_replicas: Count
    """Most pods."""
    scale_down_seconds: Annotated[int, Field(ge=0, le=3600)] = 300
    """Seconds of a lower number before pods are ended."""


class Metrics(Values):
    """What scales on metrics. Without `services` and `gateways` there are no rules."""

    services: dict[Name, ScrapeTarget] = {}
    """RayServices that Prometheus scrapes, by name: their queue, time to first token and KV cache become numbers."""
    gateways: dict[Name, ScrapeTarget] = {}
    """Gateways that Prometheus scrapes, by name: the requests in flight of their pods become a number."""
    prometheus_url: Annotated[str, Field(pattern=r"^(https?://\S+)?$")] = ""
    """Address of Prometheus; with a managed adapter, and with KEDA."""
    scrape_configs: bool = False
    """A ConfigMap with scrape configurations, for a Prometheus without the Prometheus operator. Never beside
    PodMonitors: everything would be counted twice."""
    window_seconds: Annotated[int, Field(ge=60, le=3600)] = 120
    """Seconds that rates and quantiles look back; at least four scrapes."""
    ttft_quantile: Annotated[float, Field(gt=0, lt=1)] = 0.95
    """Quantile of `rayhelm_ttft_seconds`."""
    rules: dict[RuleName, MetricRule] = {}
    """Further numbers by the name that HPAs call them. Metrics of the gateway become numbers of its pods, those of a
    service numbers of the service."""
    adapter: PrometheusAdapter = PrometheusAdapter()
    """The Prometheus adapter, which serves the numbers to Kubernetes."""
    autoscalers: dict[Name, MetricAutoscaler] = {}
    """Workloads of yours that scale with a service, by name. The gateway has an HPA of its own, in its chart."""
