"""Differences between the metric catalog and the scrapes of a run."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rayhelm.facts.metrics import Availability, Exporter, Metric
from testbed.live_metrics.catalog.scrapes import Phases, Scraped

__all__ = ["Change", "compare_exporters", "file_of"]

PREFIXES = {
    "ray_serve_": "serve",
    "ray_vllm_": "vllm",
    "ray_rayhelm_": "tokens",
    "ray_node_": "ray-node",
    "ray_component_": "ray-node",
    "ray_": "ray-core",
    "rayhelm_gateway_": "gateway",
    "haproxy_": "haproxy",
}
"""Files of the catalog by the start of a name; the first that fits."""
SELECTED = {"haproxy"}
"""Files with the metrics that queries use, not with all that the program exports."""
EXPECTED: frozenset[Availability] = frozenset({"always", "idle"})
"""Availabilities of metrics that each run has. Others depend on what happens in a run."""
JUDGED: frozenset[Availability] = frozenset({"always", "first", "idle", "once"})
"""Availabilities that the three scrapes can contradict."""
Value = str | bool | tuple[str, ...] | tuple[float, ...]


@dataclass(frozen=True)
class Change:
    """One difference."""

    file: str
    """Name of the file in `data/metrics`."""
    metric: str
    field: str
    """Field of the catalog; empty for a new metric."""
    old: Value
    new: Value
    is_written: bool = True
    """Otherwise it is only reported."""
    entry: Metric | None = None
    """A new metric."""


def file_of(metric: str) -> str:
    """Return the file that a metric belongs to; empty for one outside of the catalog, such as `python_info`."""
    return next((file for prefix, file in PREFIXES.items() if metric.startswith(prefix)), "")


def compare_exporters(exporters: Mapping[str, Exporter], phases: Phases) -> list[Change]:
    """Return all differences, in the order of the catalog; new metrics after the known ones of their file."""
    scraped = phases.all
    changes: list[Change] = []
    for file in dict.fromkeys(PREFIXES.values()):
        exporter = exporters[file]
        for name in exporter.metrics:
            changes += _compare(file, name, exporter, phases, scraped)
        new = sorted(name for name in scraped if file_of(name) == file and name not in exporter.metrics)
        if file not in SELECTED:
            changes += [_describe_new(file, name, exporter, phases, scraped[name]) for name in new]
    return changes


def _compare(
    file: str, name: str, exporter: Exporter, phases: Phases, scraped: Mapping[str, Scraped]
) -> Iterator[Change]:
    metric = exporter.metrics[name]
    if name not in scraped:
        if metric.seen:
            # A counter of errors is absent from a run without errors, and still exists.
            is_expected = metric.availability in EXPECTED and not metric.needs
            yield Change(file, name, "seen", True, False, is_written=is_expected)
        return
    found = scraped[name]
    if not metric.seen:
        yield Change(file, name, "seen", False, True)
    if found.type != metric.type:
        yield Change(file, name, "type", metric.type, found.type)
    yield from _compare_labels(file, name, exporter, found)
    if metric.buckets and found.buckets != metric.buckets:
        yield Change(file, name, "buckets", metric.buckets, found.buckets)
    if (availability := _availability(metric, name, phases)) != metric.availability:
        yield Change(file, name, "availability", metric.availability, availability)


def _compare_labels(file: str, name: str, exporter: Exporter, found: Scraped) -> Iterator[Change]:
    metric = exporter.metrics[name]
    known = found.labels | found.empty_labels
    # An info metric has many labels, and the catalog the useful ones.
    new = found.labels - set(exporter.labels) if metric.unit != "info" else set()
    own = set(metric.labels) & known | new
    lacks = set(exporter.labels) - known
    if own != set(metric.labels):
        yield Change(file, name, "labels", metric.labels, tuple(sorted(own)))
    if lacks != set(metric.lacks):
        yield Change(file, name, "lacks", metric.lacks, tuple(sorted(lacks)))


def _availability(metric: Metric, name: str, phases: Phases) -> Availability:
    """Return the availability that agrees with the scrapes; the catalog's one if they do not contradict it."""
    was = metric.availability
    if was not in JUDGED:
        return was
    at_start, at_load, at_idle = (name in each for each in (phases.start, phases.load, phases.idle))
    if was == "once":
        return "always" if at_start and at_load and at_idle else was
    if at_load and not at_idle:
        return "idle"
    if was == "idle" and at_idle:
        return "always" if at_start else "first"
    if was == "always" and not at_start:
        return "first"
    if was == "first" and at_start and (metric.type == "gauge" or phases.start[name].is_zero):
        # A counter above 0 can have had its first increment while the endpoint started.
        return "always"
    return was


def _describe_new(file: str, name: str, exporter: Exporter, phases: Phases, found: Scraped) -> Change:
    if found.type not in ("gauge", "counter", "histogram"):
        return Change(file, name, "type", "", found.type, is_written=False)
    entry = Metric.model_validate(
        {
            "type": found.type,
            "unit": _guess_unit(name),
            "labels": sorted(found.labels - set(exporter.labels)),
            "lacks": sorted(set(exporter.labels) - found.labels - found.empty_labels),
            "buckets": found.buckets,
            "availability": "always" if found.type == "gauge" else "first",
            "source": "live scrape",
            "meaning": _meaning(found.meaning),
        }
    )
    availability = _availability(entry, name, phases)
    return Change(file, name, "", "", found.type, entry=entry.model_copy(update={"availability": availability}))


def _guess_unit(name: str) -> str:
    base = re.sub(r"_(total|max|mean|p\d+)$", "", name)
    units = {"_ms": "milliseconds", "_seconds": "seconds", "_bytes": "bytes", "_info": "info", "_percent": "percent"}
    units |= {"_tokens": "tokens", "_requests": "requests", "_replicas": "replicas", "_nodes": "nodes"}
    return next((unit for end, unit in units.items() if base.endswith(end)), "count")


def _meaning(text: str) -> str:
    """Return the HELP text as a sentence on one line."""
    line = " ".join(text.split())
    return line if line.endswith(".") else f"{line or 'The exporter has no description'}."
