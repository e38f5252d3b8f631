"""What Prometheus tells of a deployment.

vLLM's series have no label of the deployment, but `ReplicaId`, which is Serve's own id of the replica; and every series
of one Ray cluster has its `SessionName`, so that two clusters beside each other in an upgrade are told apart. Gauges
vanish 20 s after an engine idles, and counters are not there before the first increment: what is absent while
Prometheus knows the cluster means an engine with nothing to do, or one of which nothing is known.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

__all__ = ["Queries", "Sample", "Samples", "in_time", "known", "waiting"]


class Sample(Protocol):
    """One element of an instant vector, as Ray hands it over."""

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
    """Seconds over which first tokens are counted: several scrapes, and Ray's own 10 s between two values."""

    @property
    def known(self) -> str:
        """Series that Serve's controller always writes: is this cluster scraped at all?"""
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
        return [self.known, self.waiting, self.first_tokens]

    @property
    def _here(self) -> str:
        return f'{{SessionName="{self.session}"}}'


def known(answer: Samples | None) -> bool:
    """Whether Prometheus answers and scrapes this cluster."""
    return answer is not None and any(sample.value > 0 for sample in answer.samples)


def waiting(answer: Samples | None, replicas: Collection[str]) -> float | None:
    """Requests that wait in the engines of these replicas; an engine that is absent idles."""
    if answer is None:
        return None
    return sum(sample.value for sample in answer.samples if sample.labels.get("ReplicaId") in replicas)


def in_time(answer: Samples | None, replicas: Collection[str], target_s: float, *, at_least: float) -> float | None:
    """Share of first tokens within `target_s`; None where fewer than `at_least` came. Straight between two bounds of
    the histogram, as `histogram_quantile` does it."""
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
    return min(1.0, _counted(buckets, target_s) / total)


def _counted(buckets: Mapping[float, float], target_s: float) -> float:
    """First tokens up to `target_s`."""
    below, counted = 0.0, 0.0
    for bound in sorted(buckets):
        if bound == target_s:
            return buckets[bound]
        if bound > target_s:
            # The last bucket has no upper end: what lies in it came late.
            part = 0.0 if bound == inf else (target_s - below) / (bound - below)
            return counted + part * (buckets[bound] - counted)
        below, counted = bound, buckets[bound]
    return counted
