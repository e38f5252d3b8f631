"""Run the endpoint through its phases, and read what Prometheus has of the metrics of rules and dashboards."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import packages_distributions, version

from rayhelm.facts.metrics import load_exporters, load_metrics
from rayhelm.observe.bundled import load_bundled
from rayhelm.observe.check import metrics_of
from rayhelm.observe.rules import load_alerts, load_recordings
from testbed.live_metrics.endpoint import Endpoint, Series
from testbed.live_metrics.load import send_load
from testbed.live_metrics.recording.autoscaling import allow_replicas
from testbed.live_metrics.recording.recorded import Phase, Recorded, series_name, write_values

__all__ = ["PHASES", "Part", "list_metrics", "record"]

STEP = 15
"""Seconds between two samples: the default scrape interval of the Prometheus operator's chart is 30, ours is 10."""
NEUTRAL = {"NodeAddress": "10.0.0.1", "ip": "10.0.0.1", "node_ip_address": "10.0.0.1", "Hostname": "node-1"}
"""Values of labels that would name the computer of the run."""


@dataclass(frozen=True)
class Part:
    """A phase before it ran."""

    name: str
    minutes: float
    clients: int = 0
    pause: float = 0
    """Mean seconds between two requests of a client."""


REPLICAS = 3
"""Most replicas of the chat model."""
SETTLE = 45
"""Seconds without requests before the load: Ray exports the last values of replicas that were replaced for 20 s."""
PHASES = (
    Part("light", 6, clients=2, pause=1),
    Part("heavy", 5, clients=12, pause=0.2),
    Part("light again", 3, clients=2, pause=1),
    Part("idle", 9),
)
"""The load of a run. `heavy` adds replicas, and `idle` is long enough for their removal."""


def record(endpoint: Endpoint, parts: Sequence[Part], say: Callable[[str], None]) -> Recorded:
    """Run the phases and return the recorded run."""
    first = endpoint.query("min_over_time(timestamp(up)[2h:5s])")
    start = min(float(series["value"][1]) for series in first)
    say(f"allow {REPLICAS} replicas of the chat model")
    allow_replicas(endpoint, "chat", REPLICAS)
    time.sleep(SETTLE)
    ends = [time.time()]
    for part in parts:
        say(f"{part.name}: {part.clients} clients for {part.minutes:g} minutes")
        if part.clients:
            asyncio.run(send_load(endpoint, part.minutes * 60, part.clients, part.pause))
        else:
            time.sleep(part.minutes * 60)
        ends.append(time.time())
    return read_run(endpoint, parts, start, ends)


def read_run(endpoint: Endpoint, parts: Sequence[Part], start: float, ends: Sequence[float]) -> Recorded:
    """Read the series of a run that started at `start`; `ends` are the times at which the phases end, Unix seconds."""
    steps = [int((end - start) / STEP) for end in ends]
    names = ["start", *(part.name for part in parts)]
    clients = [0, *(part.clients for part in parts)]
    phases = tuple(
        Phase(name=name, start=begin, end=end, clients=count)
        for name, begin, end, count in zip(names, [0, *steps], steps, clients, strict=False)
    )
    series = dict(sorted(_read(endpoint, start, steps[-1])))
    return Recorded(versions=_versions(), start=start, step=STEP, phases=phases, series=series)


def list_metrics() -> list[str]:
    """List the metrics that a rule or a dashboard reads and that an endpoint can have."""
    texts = [rule.query for rules in load_recordings().values() for rule in rules]
    texts += [alert.query for alert in load_alerts().values()]
    texts += [
        target["expr"]
        for dashboard in load_bundled().values()
        for panel in dashboard["panels"]
        for target in panel.get("targets", [])
    ]
    recorded = load_exporters()["rules"].metrics
    return sorted({name for text in texts for name in metrics_of(text)} - recorded.keys())


def _read(endpoint: Endpoint, start: float, steps: int) -> Iterator[tuple[str, str]]:
    for name in list_metrics():
        names = [name]
        if load_metrics()[name].type == "histogram":
            names = [f"{name}_bucket", f"{name}_count"]
        for each in names:
            for found in endpoint.query_range(each, start, start + (steps - 1) * STEP, STEP):
                yield series_name(_neutral(found["metric"])), write_values(_on_grid(found, start, steps))


def _on_grid(found: Series, start: float, steps: int) -> list[float | None]:
    values: list[float | None] = [None] * steps
    for moment, value in found["values"]:
        values[round((float(moment) - start) / STEP)] = float(value)
    return values


def _neutral(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels without those that only OpenTelemetry adds, and without names of the computer."""
    kept = {name: value for name, value in labels.items() if not name.startswith("otel_") and value}
    return {name: NEUTRAL.get(name, value) for name, value in kept.items()}


def _versions() -> dict[str, str]:
    """Versions by import name. vLLM's package for CPUs has another name than the one for GPUs."""
    packages = packages_distributions()
    return {name: version(packages[name][0]) for name in ("ray", "vllm")}
