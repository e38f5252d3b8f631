"""Bucket boundaries of the histograms of latency objectives, from the metric catalog."""

import bisect

from rayhelm.facts.metrics import load_metrics
from rayhelm.observe.queries.objectives import HISTOGRAMS, Latency

__all__ = ["find_boundary", "list_boundaries"]


def find_boundary(slo: Latency, seconds: float) -> float | None:
    """Return the boundary at or above a target; None if the target is above all of them."""
    known = load_metrics()[HISTOGRAMS[slo]].buckets
    index = bisect.bisect_left(known, seconds)
    return known[index] if index < len(known) else None


def list_boundaries() -> dict[str, list[str]]:
    """Return the boundaries by objective as the label `le` has them: whole numbers with a decimal point."""
    return {slo: [str(float(each)) for each in load_metrics()[name].buckets] for slo, name in HISTOGRAMS.items()}
