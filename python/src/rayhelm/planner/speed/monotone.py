"""Times that grow with the requests in flight, and do not grow with a better GPU.

Rows correct the model of speed near their loads, so a row that was slower than its neighbors is a peak of the corrected
times. What is printed is the largest time up to the load, and at most the time of a GPU that is worse in nothing."""

from collections.abc import Callable
from dataclasses import replace
from math import exp, log, log2
from typing import NamedTuple

from rayhelm.facts import load_catalog
from rayhelm.facts.gpu import GpuKind
from rayhelm.planner.speed.neighbors import list_row_gpus
from rayhelm.planner.speed.replica import Replica

__all__ = ["Times", "list_dominated", "raise_times"]

_PER_DOUBLING = 4
"""Requests in flight at which times are compared, per doubling."""


class Times(NamedTuple):
    """Seconds."""

    ttft: float
    tpot: float


def raise_times(compute: Callable[[float], Times], requests: float, measured: tuple[float, ...]) -> Times:
    """Return the largest times with up to so many requests in flight. `measured`: those of rows.

    Between two of the numbers that are compared, the times are interpolated, so that no two loads are in the wrong
    order."""
    steps = [2 ** (step / _PER_DOUBLING) for step in range(1 + _PER_DOUBLING * _count_doublings(requests))]
    knots = sorted({*steps, *(each for each in measured if each >= 1)})
    below = [each for each in knots if each <= requests]
    if not below:
        return _join(min, compute(requests), compute(1.0))
    highest = compute(below[0])
    for each in below[1:]:
        highest = _join(max, highest, compute(each))
    above = next((each for each in knots if each > requests), None)
    if above is None or below[-1] == requests:
        return highest
    upper = _join(max, highest, compute(above))
    part = log(requests / below[-1]) / log(above / below[-1])
    return Times(*(exp((1 - part) * log(low) + part * log(high)) for low, high in zip(highest, upper, strict=True)))


def list_dominated(replica: Replica) -> list[Replica]:
    """Return the replica on each GPU with rows of the model that is worse in some figure and better in none. Other GPUs
    have no rows, and the model of speed alone is in order."""
    if replica.shape.pp > 1 or replica.speculation:
        return []
    gpu = replica.gpus[0]
    others = (load_catalog().gpu(name) for name in list_row_gpus(replica))
    return [replace(replica, gpus=(other,)) for other in others if other.id != gpu.id and _is_dominated(other, gpu)]


def _is_dominated(other: GpuKind, gpu: GpuKind) -> bool:
    def figures(each: GpuKind) -> tuple[float, ...]:
        rates = (each.memory_bandwidth_gb_per_s, each.bf16_tflops, each.fp8_tflops, each.fp4_tflops, each.usable_gib)
        return tuple(rate or 0.0 for rate in (*rates, each.link.gb_per_s))

    return other.vendor == gpu.vendor and all(
        less <= more for less, more in zip(figures(other), figures(gpu), strict=True)
    )


def _count_doublings(requests: float) -> int:
    return max(0, int(log2(max(requests, 1.0)))) + 1


def _join(choose: Callable[[float, float], float], one: Times, other: Times) -> Times:
    return Times(choose(one.ttft, other.ttft), choose(one.tpot, other.tpot))
