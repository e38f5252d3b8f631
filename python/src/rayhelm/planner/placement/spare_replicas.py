"""Spare replicas for an availability target: N+k from the failure rate of GPUs and their nodes."""

from functools import cache
from importlib.resources import files
from math import exp, lgamma, log

import yaml

from rayhelm.facts.closed import Closed

__all__ = ["FailureRates", "compute_availability", "count_spare_replicas", "load_failure_rates"]

_MOST_SPARE = 1000


class FailureRates(Closed):
    """Failures of GPUs with their nodes: `data/performance/failures.yaml`."""

    failures_per_gpu_hour: float
    failures_source: str
    repair_h: float
    """Hours until a failed replica serves again."""
    repair_source: str


@cache
def load_failure_rates() -> FailureRates:
    text = files("rayhelm").joinpath("data/performance/failures.yaml").read_text()
    return FailureRates.model_validate(yaml.safe_load(text))


def compute_availability(gpus: int) -> float:
    """Return the part of the time in which a replica with so many GPUs is up: 1 / (1 + failures x repair time)."""
    rates = load_failure_rates()
    return 1 / (1 + gpus * rates.failures_per_gpu_hour * rates.repair_h)


@cache
def count_spare_replicas(needed: int, gpus: int, target: float | None) -> int:
    """Return the fewest spare replicas with which at least `needed` are up for the part `target` of the time; 0 without
    a target. Replicas fail independently, so the number of those that are up is binomial. `gpus`: of one replica."""
    if target is None:
        return 0
    up = compute_availability(gpus)
    for spare in range(_MOST_SPARE):
        count = needed + spare
        if sum(_find_probability(count, down, up) for down in range(spare + 1)) >= target:
            return spare
    return _MOST_SPARE


def _find_probability(count: int, down: int, up: float) -> float:
    """Return the probability that `down` of `count` replicas are down, with logarithms, because factorials are
    large."""
    ways = lgamma(count + 1) - lgamma(down + 1) - lgamma(count - down + 1)
    return exp(ways + (count - down) * log(up) + down * log(1 - up))
