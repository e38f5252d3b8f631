"""Catalog of the metrics that queries may use: `data/metrics/<exporter>.yaml`."""

from functools import cache
from importlib.resources import files
from typing import Literal

import yaml
from pydantic import Field

from rayhelm.facts.closed import Closed

__all__ = [
    "SUFFIXES",
    "Availability",
    "Exporter",
    "Metric",
    "Replacement",
    "Scraped",
    "exporter_of",
    "find_replacement",
    "load_exporters",
    "load_metrics",
    "load_replacements",
]

SUFFIXES = ("_bucket", "_count", "_sum")
"""Series of a histogram."""
Availability = Literal["always", "first", "idle", "once", "event", "device"]
Scraped = Literal["service", "gateway", "operator", "node", "cluster", "prometheus", "rules"]


class Metric(Closed):
    """One metric. A histogram has its name without `_bucket`."""

    type: Literal["gauge", "counter", "histogram"]
    unit: str
    """Unit of the values, or what they count."""
    labels: tuple[str, ...] = ()
    """Labels in addition to the exporter's."""
    lacks: tuple[str, ...] = ()
    """Labels of the exporter that this metric does not have."""
    buckets: tuple[float, ...] = ()
    """Finite upper bounds of a histogram; empty if they depend on the configuration."""
    where: str = ""
    """Label matchers that select the relevant series."""
    availability: Availability
    """When there are samples. `always`: while the target runs. `first`: from the first increment on. `idle`: until 20 s
    after the engine's last step. `once`: for 20 s after the start. `event`: only while something holds. `device`: on
    nodes with the device."""
    seen: bool = True
    """A live scrape had it; else only the source code has it."""
    needs: str = ""
    """Setting or feature without which it does not exist."""
    since: str = ""
    """First version of the program that has it, if the supported versions differ."""
    until: str = ""
    """Last version of the program that has it."""
    source: str
    """File of the program that exports it."""
    meaning: str


class Replacement(Closed):
    """What to use instead of a name that does not exist."""

    use: tuple[str, ...]
    """Metrics of the catalog; the first is the closest."""
    why: str
    """Why the name does not exist, and how the replacements differ."""


class Exporter(Closed):
    """The metrics of one program."""

    about: str
    """What the metrics describe."""
    scraped: Scraped
    """What Prometheus scrapes: pods of the charts `ray-service` or `gateway`, an operator, nodes, objects of the
    cluster, Prometheus itself, or nothing, because recording `rules` write them."""
    approximate_sums: bool = False
    """Ray computes `_sum` from the middle of each bucket, so a mean from it is wrong."""
    labels: tuple[str, ...]
    """Labels of all series, without those that the scrape adds."""
    metrics: dict[str, Metric]
    absent: dict[str, Replacement] = Field(default={})
    """Names in circulation that do not exist."""

    def labels_of(self, name: str) -> frozenset[str]:
        """Labels of one metric, without those that the scrape adds."""
        metric = self.metrics[name]
        return frozenset((*self.labels, *metric.labels)) - set(metric.lacks)


@cache
def load_exporters() -> dict[str, Exporter]:
    """Every exporter, by the name of its file."""
    folder = files("rayhelm").joinpath("data/metrics")
    paths = sorted((path for path in folder.iterdir() if path.name.endswith(".yaml")), key=lambda path: path.name)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return {
        path.name.removesuffix(".yaml"): Exporter.model_validate(yaml.load(path.read_text(), Loader=loader))
        for path in paths
    }


@cache
def load_metrics() -> dict[str, Metric]:
    """Every metric, by name."""
    return {name: metric for exporter in load_exporters().values() for name, metric in exporter.metrics.items()}


@cache
def _exporters_by_metric() -> dict[str, Exporter]:
    return {name: exporter for exporter in load_exporters().values() for name in exporter.metrics}


@cache
def load_replacements() -> dict[str, Replacement]:
    """What replaces each name that does not exist, of all exporters. A histogram has its name without `_bucket`."""
    return {name: found for exporter in load_exporters().values() for name, found in exporter.absent.items()}


def find_replacement(name: str) -> tuple[str, Replacement] | None:
    """Return what replaces a name that does not exist: the closest series, and the reason. A series of a histogram
    keeps its suffix. None for another name."""
    for suffix in ("", *SUFFIXES):
        base = name.removesuffix(suffix)
        if base + suffix == name and (found := load_replacements().get(base)):
            closest = found.use[0]
            return closest + suffix * (load_metrics()[closest].type == "histogram"), found
    return None


def exporter_of(name: str) -> Exporter:
    """The exporter of a metric. Raises KeyError."""
    return _exporters_by_metric()[name]
