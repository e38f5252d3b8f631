"""What the measured rows do not have: GPUs, pipelines, experts in wide formats, and many requests in flight. The last
two are slower than the model of speed says, by factors that come from published measurements of other sources."""

from collections.abc import Iterator
from dataclasses import replace
from math import exp, log, log2

from rayhelm.planner.speed.assumptions import load_assumptions
from rayhelm.planner.speed.coefficients import SpeedCoefficients, load_coefficients
from rayhelm.planner.speed.links import has_fast_link
from rayhelm.planner.speed.neighbors import Correction
from rayhelm.planner.speed.replica import Replica
from rayhelm.planner.speed.rows import count_rows_by_gpu

__all__ = ["adjust", "describe_unlike", "find_saturation", "has_wide_experts"]

_WIDE = ("fp8", "bf16")


def has_wide_experts(replica: Replica) -> bool:
    """Return whether the experts have 8 or 16 bits: those of all rows that the model was fitted to have 4."""
    return replica.model.experts is not None and replica.work.expert_format in _WIDE


def find_saturation(replica: Replica, running: float) -> float:
    """Return how far the requests in flight are beyond those of the rows: 0 up to `saturation_from` in one engine, 1
    from twice as many on. Only NVIDIA's: published figures of MI300X follow the model up to 1,500 requests."""
    if replica.gpus[0].vendor != "nvidia":
        return 0.0
    each = running / replica.shape.dp
    return min(1.0, max(0.0, log2(max(each, 1.0) / load_assumptions().saturation_from)))


def adjust(
    correction: Correction, replica: Replica, running: float = 0.0, fitted: SpeedCoefficients | None = None
) -> Correction:
    """Return the correction with the factors of what was not measured. Where rows correct the model in full, no factor
    applies. `running`: requests that run, if a benchmark sends all at once; 0 for requests that arrive one by one."""
    factor = find_factor(replica, running, fitted or load_coefficients()) ** (1 - correction.confidence)
    if factor == 1:
        return correction
    return replace(correction, tpot=correction.tpot + log(factor), ttft=correction.ttft + log(factor))


def find_factor(replica: Replica, running: float, fitted: SpeedCoefficients) -> float:
    """Return the factor on all times."""
    wide = fitted.wide_experts_factor if has_wide_experts(replica) else 1.0
    return wide * exp(find_saturation(replica, running) * log(fitted.saturation_factor))


def describe_unlike(replica: Replica, correction: Correction, running: float = 0.0) -> str:
    """Return in what a replica and its requests in flight differ from all rows; empty if they do not, or if rows
    correct the estimate in full."""
    if correction.confidence == 1:
        return ""
    found = list(_list_unlike(replica))
    if find_saturation(replica, running):
        found.append(f"{running / replica.shape.dp:,.0f} requests in flight in one engine")
    return f"no measurement like this: {', '.join(found)}" if found else ""


def _list_unlike(replica: Replica) -> Iterator[str]:
    shape, gpu = replica.shape, replica.gpus[0]
    yield from dict.fromkeys(each.id for each in replica.gpus if each.id not in count_rows_by_gpu())
    if shape.pp > 1:
        yield f"{shape.pp} pipeline stages"
    if shape.tp > 2 and not has_fast_link(gpu, shape.tp):
        yield f"all-reduces of {shape.tp} GPUs over PCIe"
    if has_wide_experts(replica):
        yield "experts in 8 or 16 bits"
