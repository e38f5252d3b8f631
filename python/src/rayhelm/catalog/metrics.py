"""The metrics that dashboards, alerts, the Prometheus adapter and policies may name: `data/metrics/<exporter>.yaml`."""

from functools import cache
from importlib.resources import files
from typing import Literal

import yaml
from pydantic import Field

from rayhelm.closed import Closed

__all__ = ["Exporter", "Metric", "load_exporters", "load_metrics"]

Availability = Literal["always", "first", "idle", "once", "device"]


class Metric(Closed):
    """One name, as Prometheus knows it; a histogram's is without `_bucket`."""

    type: Literal["gauge", "counter", "histogram"]
    unit: str
    """What is counted, or the unit it is measured in."""
    labels: tuple[str, ...] = ()
    """Its own labels, beside those of all of the exporter's."""
    where: str = ""
    """Matcher that picks the series which are meant."""
    availability: Availability
    """When it is there: `always`, from the `first` increment on, until some 20 s after the engine's last step (`idle`),
    for some 20 s after the start (`once`), or where there is a `device`."""
    seen: bool = True
    """Found in a live scrape; else read in the source alone."""
    source: str
    """File of the project that exports it."""
    meaning: str


class Exporter(Closed):
    """What one kind of program exports."""

    about: str
    """Whose metrics they are."""
    scraped: Literal["service", "gateway", "operator", "node"]
    """What Prometheus has to scrape for them: pods of the charts `ray-service` or `gateway`, an operator, or nodes."""
    labels: tuple[str, ...]
    """Labels of all of its series, without those that Prometheus adds."""
    metrics: dict[str, Metric]
    absent: dict[str, str] = Field(default={})
    """Names in circulation that it does not have, and what to use instead."""


@cache
def load_exporters() -> dict[str, Exporter]:
    """Every exporter by the name of its file."""
    folder = files("rayhelm").joinpath("data/metrics")
    paths = sorted((path for path in folder.iterdir() if path.name.endswith(".yaml")), key=lambda path: path.name)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return {
        path.name.removesuffix(".yaml"): Exporter.model_validate(yaml.load(path.read_text(), Loader=loader))
        for path in paths
    }


@cache
def load_metrics() -> dict[str, Metric]:
    """Every metric by name."""
    return {name: metric for exporter in load_exporters().values() for name, metric in exporter.metrics.items()}
