"""GPU-hours, requests and tokens of a period, from Prometheus.

A gauge is read in the middle of each step and counts for the whole step. A counter is read as its increase in each
hour. So gaps count as nothing, and are never filled.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from rayhelm.live.cost.client import PrometheusClient, Series
from rayhelm.live.cost.periods import HOUR, Period, split_into_chunks
from rayhelm.observe.queries import Scope, cost, scaling, tenants, traffic
from rayhelm.observe.queries.labels import DEPLOYMENT, MODEL, MODEL_AND_TENANT, SERVICE, WORKER_GROUP_LABEL, By

__all__ = ["GroupUsage", "Key", "Usage", "measure_usage"]

Key = tuple[str, ...]
"""Values of labels: cluster, namespace and service, and one or two more."""
GROUP: By = (*SERVICE, WORKER_GROUP_LABEL)
_EVERYTHING = Scope()


@dataclass
class GroupUsage:
    """GPUs of a worker group."""

    gpu_hours: float = 0.0
    """GPUs of its pods, used or not."""
    free_gpu_hours: float = 0.0
    """Those of them that no replica used."""
    priced_gpu_hours: float = 0.0
    """Those of them for which Prometheus had a price."""
    cost: float = 0.0
    """USD at the prices of Prometheus."""
    free_cost: float = 0.0


@dataclass
class Usage:
    """What Prometheus has of a period."""

    period: Period
    hours_with_data: int = 0
    data_from: datetime | None = None
    """Start of the first hour with data."""
    groups: dict[Key, GroupUsage] = field(default_factory=lambda: defaultdict(GroupUsage))
    replica_hours: dict[Key, float] = field(default_factory=lambda: defaultdict(float))
    """Healthy replicas, by deployment."""
    busy_replica_hours: dict[Key, float] = field(default_factory=lambda: defaultdict(float))
    """Those with a request in flight."""
    requests: dict[Key, float] = field(default_factory=lambda: defaultdict(float))
    """Finished requests, by model."""
    input_tokens: dict[Key, float] = field(default_factory=lambda: defaultdict(float))
    output_tokens: dict[Key, float] = field(default_factory=lambda: defaultdict(float))
    tenant_input_tokens: dict[Key, float] = field(default_factory=lambda: defaultdict(float))
    """By model and tenant; empty if they were not asked for."""
    tenant_output_tokens: dict[Key, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def services(self) -> list[Key]:
        """Services with any series: cluster, namespace, service."""
        return sorted({key[:3] for part in (self.groups, self.replica_hours, self.requests) for key in part})


def measure_usage(
    client: PrometheusClient, period: Period, show: Callable[[str], None], *, by_tenant: bool = False
) -> Usage:
    """Query the usage of a period. `show` gets a line for each day. Raises MissingError."""
    usage = Usage(period)
    chunks = list(split_into_chunks(period))
    for number, chunk in enumerate(chunks, start=1):
        show(f"{chunk.start:%Y-%m-%d} ({number} of {len(chunks)} days)")
        if _add_coverage(usage, _read_hours(client, cost.scraped_targets(_EVERYTHING, "1h"), chunk)):
            _add_chunk(usage, client, chunk, period.step_s)
            if by_tenant:
                _add_tenants(usage, client, chunk)
    return usage


def _add_coverage(usage: Usage, found: list[Series]) -> bool:
    """Count the hours with data, and return whether there are any."""
    ends = sorted({at for series in found for at in series.values})
    if ends and usage.data_from is None:
        usage.data_from = datetime.fromtimestamp(ends[0], UTC) - HOUR
    usage.hours_with_data += len(ends)
    return bool(ends)


def _add_chunk(usage: Usage, client: PrometheusClient, chunk: Period, step_s: int) -> None:
    middle, hours = timedelta(seconds=step_s / 2), step_s / 3600

    def read_gauge(query: str) -> list[Series]:
        return client.query_range(query, chunk.start + middle, chunk.end - middle, step_s)

    _add_groups(
        usage,
        read_gauge(cost.gpus(_EVERYTHING)),
        read_gauge(cost.free_gpus(_EVERYTHING)),
        read_gauge(cost.gpu_price(_EVERYTHING)),
        hours,
    )
    _add(usage.replica_hours, read_gauge(scaling.healthy_replicas(_EVERYTHING)), DEPLOYMENT, hours)
    _add(usage.busy_replica_hours, read_gauge(cost.busy_replicas(_EVERYTHING)), DEPLOYMENT, hours)
    counters = (
        (usage.requests, traffic.finished_requests),
        (usage.input_tokens, traffic.prompt_tokens),
        (usage.output_tokens, traffic.generated_tokens),
    )
    for counts, counter in counters:
        _add(counts, _read_hours(client, counter(_EVERYTHING, "1h"), chunk), MODEL, 1.0)


def _add_tenants(usage: Usage, client: PrometheusClient, chunk: Period) -> None:
    counters = (
        (usage.tenant_input_tokens, tenants.prompt_tokens),
        (usage.tenant_output_tokens, tenants.generated_tokens),
    )
    for counts, counter in counters:
        _add(counts, _read_hours(client, counter(_EVERYTHING, "1h"), chunk), MODEL_AND_TENANT, 1.0)


def _read_hours(client: PrometheusClient, query: str, chunk: Period) -> list[Series]:
    """Values of a query about the last hour, at the end of each hour."""
    return client.query_range(query, chunk.start + HOUR, chunk.end, 3600)


def _add(totals: dict[Key, float], found: list[Series], labels: By, factor: float) -> None:
    for series in found:
        totals[_key(series, labels)] += sum(series.values.values()) * factor


def _add_groups(
    usage: Usage, gpus: list[Series], free_gpus: list[Series], gpu_prices: list[Series], hours: float
) -> None:
    """Add GPU-hours, each multiplied with the price of its time."""
    prices = {_key(series, GROUP): series.values for series in gpu_prices}
    for series in gpus:
        key = _key(series, GROUP)
        group, price = usage.groups[key], prices.get(key, {})
        group.gpu_hours += sum(series.values.values()) * hours
        group.priced_gpu_hours += sum(count for at, count in series.values.items() if at in price) * hours
        group.cost += sum(count * price.get(at, 0.0) for at, count in series.values.items()) * hours
    for series in free_gpus:
        key = _key(series, GROUP)
        group, price = usage.groups[key], prices.get(key, {})
        group.free_gpu_hours += sum(series.values.values()) * hours
        group.free_cost += sum(count * price.get(at, 0.0) for at, count in series.values.items()) * hours


def _key(series: Series, labels: By) -> Key:
    return tuple(series.labels.get(label, "") for label in labels)
