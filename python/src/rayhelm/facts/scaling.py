"""Metrics for autoscaling: `data/scaling.yaml`."""

from functools import cache
from importlib.resources import files
from typing import Any, Literal

import yaml

from rayhelm.facts.closed import Closed
from rayhelm.facts.metrics import load_exporters

__all__ = ["Aggregate", "ScalingRules", "ScalingScope", "as_chart_data", "load_scaling_rules"]

Aggregate = Literal["Sum", "Max", "Rate", "Quantile"]


class ScalingScope(Closed):
    """What a metric belongs to: a pod of the gateway, or a service."""

    api: Literal["Pods", "External"]
    """Type of the metric in a HorizontalPodAutoscaler."""
    by: tuple[str, ...]
    """Labels that identify it."""
    stays: str
    """Metric that exists as long as the pods do."""


class ScalingRule(Closed):
    """One metric for autoscaling."""

    series: tuple[str, ...]
    """Metrics of the catalog; several are added."""
    aggregate: Aggregate
    meaning: str


class ScalingRules(Closed):
    """Content of scaling.yaml."""

    scopes: dict[Literal["gateway", "service"], ScalingScope]
    """By what is scraped."""
    rules: dict[str, ScalingRule]
    """By the name that autoscalers use."""
    aggregates: dict[Aggregate, Literal["gauge", "counter", "histogram"]]
    """Type of metric that each aggregate reads."""
    scalable: dict[str, str]
    """API version of each kind with a scale subresource."""
    unscalable: dict[str, str]
    """What scales a kind without one."""


@cache
def load_scaling_rules() -> ScalingRules:
    text = files("rayhelm").joinpath("data/scaling.yaml").read_text(encoding="utf-8")
    return ScalingRules.model_validate(yaml.safe_load(text))


def as_chart_data() -> dict[str, Any]:
    """Data for the templates of chart platform."""
    every = load_exporters().values()
    return load_scaling_rules().model_dump(mode="json", exclude={"scopes": {"__all__": {"stays"}}}) | {
        "metrics": {
            name: {"scraped": exporter.scraped, **metric.model_dump(include={"type", "availability"})}
            for exporter in every
            for name, metric in exporter.metrics.items()
        },
        "absent": {name: found.use[0] for exporter in every for name, found in exporter.absent.items()},
    }
