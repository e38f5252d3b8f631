"""What scrapes contain: metrics with type, labels and buckets, at three times of a run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prometheus_client import Metric as Family
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

__all__ = ["Phases", "Scraped", "parse_scrapes"]

NOT_LABELS = {"le", "otel_scope_name", "otel_scope_schema_url", "otel_scope_version"}
"""Bounds of buckets, and the constants that Ray's exporter adds to each series."""
NEUTRAL = {
    "NodeAddress": "10.0.0.1",
    "SessionName": "session_x",
    "ip": "10.0.0.1",
    "node_ip_address": "10.0.0.1",
    "pid": "1",
}
"""Values of labels that would name the computer of the run."""


@dataclass(frozen=True)
class Scraped:
    """One metric, over all its series. A histogram has its name without `_bucket`."""

    type: str
    meaning: str
    labels: frozenset[str]
    """Labels that have a value in at least one series, without `le`."""
    empty_labels: frozenset[str] = frozenset()
    """Labels that are there and have no value, like `WorkerId` of a raylet."""
    buckets: tuple[float, ...] = ()
    """Finite upper bounds of a histogram."""
    is_zero: bool = False
    """All values are 0."""
    example: str = ""
    """TYPE and one series, as text."""

    def join(self, other: "Scraped") -> "Scraped":
        """Return what this and another scrape of the metric have together."""
        return Scraped(
            type=self.type,
            meaning=self.meaning or other.meaning,
            labels=(labels := self.labels | other.labels),
            empty_labels=(self.empty_labels | other.empty_labels) - labels,
            buckets=tuple(sorted({*self.buckets, *other.buckets})),
            is_zero=self.is_zero and other.is_zero,
            example=self.example,
        )


@dataclass(frozen=True)
class Phases:
    """Metrics by name, at three times."""

    start: Mapping[str, Scraped]
    """Before the first request."""
    load: Mapping[str, Scraped]
    """While requests are answered."""
    idle: Mapping[str, Scraped]
    """After the last request, when gauges of the engine are gone."""

    @property
    def all(self) -> dict[str, Scraped]:
        """Each metric over the whole run."""
        return _join_all([self.load, self.idle, self.start])


def parse_scrapes(texts: Iterable[str]) -> dict[str, Scraped]:
    """Parse the responses of all targets. Metrics without a sample, and times of creation, are left out."""
    return _join_all(
        {_name(family): _describe(family)}
        for text in texts
        for family in text_string_to_metric_families(text)
        if family.samples and not family.name.endswith("_created")
    )


def _name(family: Family) -> str:
    """Return the name of the series: the parser removes `_total`."""
    return f"{family.name}_total" if family.type == "counter" else family.name


def _describe(family: Family) -> Scraped:
    bounds = {float(sample.labels["le"]) for sample in family.samples if "le" in sample.labels}
    known = {label for sample in family.samples for label in sample.labels} - NOT_LABELS
    filled = {label for sample in family.samples for label, value in sample.labels.items() if value} & known
    return Scraped(
        type=family.type,
        meaning=family.documentation,
        labels=frozenset(filled),
        empty_labels=frozenset(known - filled),
        buckets=tuple(sorted(bounds - {float("inf")})),
        is_zero=not any(sample.value for sample in family.samples),
        example=_example(family),
    )


def _example(family: Family) -> str:
    """Return the series with the labels of the first sample. Addresses and sessions get neutral values."""
    first = _series(family.samples[0])
    lines = [f"# TYPE {_name(family)} {family.type}"]
    for sample in family.samples:
        if _series(sample) == first:
            names = (name for name in sample.labels if name == "le" or name not in NOT_LABELS)
            labels = ",".join(f'{name}="{NEUTRAL.get(name, sample.labels[name])}"' for name in names)
            lines.append(f"{sample.name}{{{labels}}} {sample.value}")
    return "\n".join(lines) + "\n"


def _series(sample: Sample) -> dict[str, str]:
    return {name: value for name, value in sample.labels.items() if name != "le"}


def _join_all(scrapes: Iterable[Mapping[str, Scraped]]) -> dict[str, Scraped]:
    joined: dict[str, Scraped] = {}
    for scrape in scrapes:
        for name, metric in scrape.items():
            joined[name] = joined[name].join(metric) if name in joined else metric
    return joined
