"""Bucket boundaries of the histograms of latency objectives, from the metric catalog."""

from rayhelm.facts.metrics import load_metrics
from rayhelm.observe.queries.objectives import HISTOGRAMS

__all__ = ["list_boundaries"]


def list_boundaries() -> dict[str, list[str]]:
    """Return the boundaries by objective as the label `le` has them: whole numbers with a decimal point."""
    return {slo: [str(float(each)) for each in load_metrics()[name].buckets] for slo, name in HISTOGRAMS.items()}
