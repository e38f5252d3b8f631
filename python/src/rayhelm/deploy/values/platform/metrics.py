"""Metrics for autoscaling: what Prometheus scrapes, the rules of the adapter, and autoscalers."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Name, Values, WebUrl
from rayhelm.deploy.values.platform.adapter import PrometheusAdapter
from rayhelm.deploy.values.platform.scraping import PlatformScraping

__all__ = ["Metrics", "ScrapeTarget"]

RuleName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=63)]
SeriesName = Annotated[str, Field(pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$")]
Kind = Annotated[str, Field(pattern=r"^[A-Z][A-Za-z]*$")]
Count = Annotated[int, Field(ge=1)]
Amount = Annotated[float, Field(ge=0)]


class ScrapeTarget(Values):
    """A service or gateway that Prometheus scrapes, through `scraping` of its chart or of this one."""

    namespace: Name
    """Its namespace."""


class MetricRule(Values):
    """An additional metric, made of metrics of the catalog (rayhelm/data/metrics)."""

    series: Annotated[list[SeriesName], Field(min_length=1)]
    """Names of metrics. Several gauges or counters are added up. Write a histogram without `_bucket`."""
    aggregate: Literal["Sum", "Max", "Rate", "Quantile"]
    """`Sum` and `Max` of gauges, `Rate` per second of counters, `Quantile` of a histogram."""
    quantile: Annotated[float, Field(gt=0, lt=1)] = 0.95
    """Quantile, for `Quantile`."""


class ScaleTarget(Values):
    """Workload that is scaled."""

    kind: Kind = "Deployment"
    """`Deployment`, `StatefulSet` or `ReplicaSet`: an object with a scale subresource."""
    name: Name
    """Name, in the namespace of the service."""


class MetricAutoscaler(Values):
    """Scales a workload by a metric of a service, in the namespace of that service."""

    kind: Literal["HPA", "KEDA"] = "HPA"
    """`HPA` reads the adapter. `KEDA` queries Prometheus."""
    target: ScaleTarget
    """Workload that is scaled."""
    service: Name
    """Service whose metric is used; one of `services`."""
    metric: RuleName
    """Name of a rule that is a sum: `rayhelm_queue_length`, or one of `rules` with `Sum` or `Rate`."""
    average_value: Amount = 0
    """Target value per pod. Required."""
    value: Amount = 0
    """Refused: by a target in total, an HPA removes the pods that are not ready yet. Use `averageValue`."""
    min_replicas: Count = 1
    """Smallest number of pods."""
    max_replicas: Count
    """Largest number of pods."""
    scale_down_seconds: Annotated[int, Field(ge=0, le=3600)] = 300
    """Seconds that the metric has to stay lower before pods are removed."""


class Metrics(Values):
    """Metrics for autoscaling. Without `services` and `gateways` there are no rules."""

    services: dict[Name, ScrapeTarget] = {}
    """RayServices that Prometheus scrapes, by name. They provide queue length, time to first token and KV cache
    usage."""
    gateways: dict[Name, ScrapeTarget] = {}
    """Gateways that Prometheus scrapes, by name. They provide the requests in flight of each pod."""
    prometheus_url: WebUrl = ""
    """Address of Prometheus. Required for a managed adapter and for KEDA."""
    scraping: PlatformScraping = PlatformScraping()
    """How Prometheus finds its targets."""
    window_seconds: Annotated[int, Field(ge=60, le=3600)] = 120
    """Time window of rates and quantiles in seconds; at least four scrape intervals."""
    ttft_quantile: Annotated[float, Field(gt=0, lt=1)] = 0.95
    """Quantile of `rayhelm_ttft_seconds`."""
    rules: dict[RuleName, MetricRule] = {}
    """Additional metrics, by the name that HPAs use. Metrics of the gateway are metrics of its pods, metrics of a
    service are metrics of the service."""
    adapter: PrometheusAdapter = PrometheusAdapter()
    """The Prometheus adapter, which serves the metrics to Kubernetes."""
    autoscalers: dict[Name, MetricAutoscaler] = {}
    """Autoscalers of other workloads by metrics of a service, by name. The chart `gateway` has its own HPA."""
