"""Metrics of a deployment, from answers of Prometheus.

vLLM's series have no deployment label. They have `ReplicaId`, Serve's id of the replica, and `SessionName` of the Ray
cluster, which distinguishes the two clusters of an upgrade. Gauges disappear 20 s after an engine becomes idle, and
counters do not exist before the first increment: if Prometheus scrapes the cluster, a missing series means an engine
that is idle or has no metrics yet.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

__all__ = ["Queries", "Sample", "Samples", "is_scraped", "share_in_time", "sum_waiting"]


class Sample(Protocol):
    """One element of an instant vector, as Ray passes it."""

    @property
    def labels(self) -> Mapping[str, str]: ...

    @property
    def value(self) -> float: ...


class Samples(Protocol):
    """An instant vector."""

    @property
    def samples(self) -> Sequence[Sample]: ...


@dataclass(frozen=True)
class Queries:
    """PromQL of one Ray cluster."""

    session: str
    """Its `SessionName`."""
    window_s: int = 120
    """Seconds over which first tokens are counted: several scrapes, and Ray's 10 s between two values."""

    @property
    def scraped(self) -> str:
        """A series that Serve's controller always writes: present if Prometheus scrapes this cluster."""
        return f"count(ray_serve_autoscaling_target_replicas{self._here})"

    @property
    def waiting(self) -> str:
        return f"sum by (ReplicaId) (avg_over_time(ray_vllm_num_requests_waiting{self._here}[{self.window_s // 2}s]))"

    @property
    def first_tokens(self) -> str:
        counted = f"increase(ray_vllm_time_to_first_token_seconds_bucket{self._here}[{self.window_s}s])"
        return f"sum by (ReplicaId, le) ({counted})"

    @property
    def all(self) -> list[str]:
        return [self.scraped, self.waiting, self.first_tokens]

    @property
    def _here(self) -> str:
        return f'{{SessionName="{self.session}"}}'


def is_scraped(answer: Samples | None) -> bool:
    """Return whether Prometheus answers and scrapes this cluster."""
    return answer is not None and any(sample.value > 0 for sample in answer.samples)


def sum_waiting(answer: Samples | None, replicas: Collection[str]) -> float | None:
    """Sum the requests that wait in the engines of these replicas; an engine without a series is idle."""
    if answer is None:
        return None
    return sum(sample.value for sample in answer.samples if sample.labels.get("ReplicaId") in replicas)


def share_in_time(
    answer: Samples | None, replicas: Collection[str], target_s: float, *, at_least: float
) -> float | None:
    """Return the share of first tokens within `target_s`; None if there are fewer than `at_least`.

    Interpolates linearly between two bounds of the histogram, as `histogram_quantile` does.
    """
    if answer is None:
        return None
    buckets: dict[float, float] = {}
    for sample in answer.samples:
        if sample.labels.get("ReplicaId") in replicas and "le" in sample.labels:
            bound = float(sample.labels["le"])
            buckets[bound] = buckets.get(bound, 0.0) + sample.value
    total = buckets.get(inf, 0.0)
    if total < max(at_least, 1e-9):
        return None
    return min(1.0, _count(buckets, target_s) / total)


def _count(buckets: Mapping[float, float], target_s: float) -> float:
    """Count the first tokens up to `target_s`."""
    below, counted = 0.0, 0.0
    for bound in sorted(buckets):
        if bound == target_s:
            return buckets[bound]
        if bound > target_s:
            # The last bucket has no upper bound: its tokens are late.
            part = 0.0 if bound == inf else (target_s - below) / (bound - below)
            return counted + part * (buckets[bound] - counted)
        below, counted = bound, buckets[bound]
    return counted
