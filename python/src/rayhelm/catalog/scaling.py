"""What is made of the metrics: scopes, rules that are always there, and what can be scaled. `data/scaling.yaml`."""

from functools import cache
from importlib.resources import files
from typing import Any, Literal

import yaml

from rayhelm.catalog.metrics import load_exporters
from rayhelm.closed import Closed

__all__ = ["ScalingRules", "ScalingScope", "as_chart_data", "load_scaling_rules"]

Aggregate = Literal["Sum", "Max", "Rate", "Quantile"]


class ScalingScope(Closed):
    """Whose number it is."""

    api: Literal["Pods", "External"]
    """Kind of metric that an HPA calls it."""
    by: tuple[str, ...]
    """Labels that tell one from another."""
    stays: str
    """Metric that is there for as long as its pods are."""


class ScalingRule(Closed):
    """One number."""

    series: tuple[str, ...]
    """Metrics; several are added up."""
    aggregate: Aggregate
    meaning: str


class ScalingRules(Closed):
    """All of scaling.yaml."""

    scopes: dict[Literal["gateway", "service"], ScalingScope]
    """By what is scraped."""
    rules: dict[str, ScalingRule]
    """By the name that HPAs call it."""
    aggregates: dict[Aggregate, Literal["gauge", "counter", "histogram"]]
    """Type that each takes."""
    scalable: dict[str, str]
    """API version by kind with a scale subresource."""
    unscalable: dict[str, str]
    """What scales a kind that has none."""


@cache
def load_scaling_rules() -> ScalingRules:
    text = files("rayhelm").joinpath("data/scaling.yaml").read_text(encoding="utf-8")
    return ScalingRules.model_validate(yaml.safe_load(text))


def as_chart_data() -> dict[str, Any]:
    """What the templates of the chart platform need to know of all this."""
    every = load_exporters().values()
    return load_scaling_rules().model_dump(mode="json") | {
        "metrics": {
            name: {"scraped": exporter.scraped, **metric.model_dump(include={"type", "availability", "where"})}
            for exporter in every
            for name, metric in exporter.metrics.items()
        },
        "absent": {name: instead for exporter in every for name, instead in exporter.absent.items()},
    }
