"""Estimate time to first token, time per output token and throughput of one shape, each as a 90 % interval."""

from dataclasses import dataclass, replace
from math import exp

from rayhelm.errors import FleetError, Problem
from rayhelm.facts.closed import Closed
from rayhelm.planner.speed.assumptions import load_assumptions
from rayhelm.planner.speed.coefficients import Band, BandChoice, load_coefficients
from rayhelm.planner.speed.model import Speed, SpeedModel, compute_speed, find_least_tpot_s
from rayhelm.planner.speed.monotone import Times, list_dominated, raise_times
from rayhelm.planner.speed.neighbors import Correction, correct, find_rows
from rayhelm.planner.speed.replica import Load, Replica
from rayhelm.planner.speed.rows import count_rows_by_gpu, describe_unmeasured
from rayhelm.planner.speed.terms import list_missing_figures
from rayhelm.planner.speed.unmeasured import adjust, describe_unlike, find_saturation, has_wide_experts

__all__ = ["Interval", "SpeedEstimate", "describe_doubt", "estimate_speed", "find_band", "find_high", "spread"]

_GROUPS = {
    "memory bandwidth": ("dense_weights", "expert_weights_native", "expert_weights_converted", "kv_cache"),
    "compute": ("decode_compute", "prefill_compute", "expert_compute", "attention", "drafts"),
    "communication": ("all_reduce_bytes", "all_reduce_small", "all_reduce_calls"),
    "stage link": ("stage_link",),
}
"""Terms of a decode step by what bounds them; the others are overhead of the engine."""
_MANY = 30
"""Rows of a GPU from which the interval is the one of measured GPUs."""
_FAST_ENOUGH_GB_PER_S = 3.0
"""Rate of a link between hosts from which a prompt crosses it in a small part of its TTFT: 25 Gbit/s, less overhead."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A 90 % interval."""

    low: float
    mid: float
    high: float


class SpeedEstimate(Closed):
    """Speed of a replica group under a load."""

    ttft_s: Interval
    """Time to first token, seconds."""
    tpot_s: Interval
    """Time per output token after the first, seconds."""
    output_tokens_per_second: Interval
    """Of the whole group."""
    basis: str
    """`measured`: this load; `interpolated`: the model on this GPU under other loads; `model`: neither."""
    sources: tuple[str, ...] = ()
    """Measured rows behind `measured` and `interpolated`."""
    bound_by: str
    """`memory bandwidth`, `compute`, `communication`, `stage link`, `overhead`, `KV cache` or `max_num_seqs`."""
    running: float
    """Requests that run at a time; the others wait."""
    notes: tuple[str, ...] = ()


def estimate_speed(replica: Replica, load: Load, kv_cache_dtype: str = "auto") -> SpeedEstimate:
    """Estimate the speed. Raises FleetError if figures of a GPU are unknown, or if the link between the pipeline stages
    is too slow for the load."""
    if missing := list(dict.fromkeys(figure for gpu in replica.gpus for figure in list_missing_figures(gpu))):
        raise FleetError(Problem(f"unknown: {', '.join(missing)}"))
    if not replica.model.causal:
        raise FleetError(
            Problem(
                f"{replica.model.id} generates no tokens: `rayhelm plan` estimates the requests per second of its task,"
                " which no measured row has"
            )
        )
    speed = compute_speed(replica, load)
    if speed.is_link_overfull:
        raise FleetError(Problem(_describe_link(replica, speed)))
    correction = _correct(replica, load, speed, kv_cache_dtype)
    return _build_estimate(replica, load, speed, correction, _find_times(replica, load, kv_cache_dtype))


def _correct(replica: Replica, load: Load, speed: Speed, kv_cache_dtype: str) -> Correction:
    # A lower max_num_seqs than that of the rows is another setting, which they do not tell about.
    rows = () if speed.limit == "max_num_seqs" else find_rows(replica)
    return adjust(correct(replica, load, rows, kv_cache_dtype), replica, speed.running)


def _find_times(replica: Replica, load: Load, kv_cache_dtype: str) -> Times:
    """Return the times at a load: no longer than those of a worse GPU, and longer with more requests in flight."""
    compared = [(each, SpeedModel(each, load, load_coefficients())) for each in (replica, *list_dominated(replica))]

    def compute(requests: float) -> Times:
        found: list[Times] = []
        for each, model in compared:
            speed = model.at(requests)
            correction = _correct(each, replace(load, concurrency=requests), speed, kv_cache_dtype)
            found.append(Times(speed.ttft_s * exp(correction.ttft), speed.tpot_s * exp(correction.tpot)))
            if correction.basis == "measured" and each is replica:
                break  # another GPU does not change a measurement
        return Times(min(each.ttft for each in found), min(each.tpot for each in found))

    rows = [row for each, _ in compared for row in find_rows(each)]
    if not rows:
        return compute(load.concurrency)  # the model of speed alone is in order
    return raise_times(compute, load.concurrency, tuple(row.load.concurrency for row in rows))


def _build_estimate(replica: Replica, load: Load, speed: Speed, correction: Correction, times: Times) -> SpeedEstimate:
    fitted = load_coefficients()
    doubt = describe_doubt(speed, correction, describe_unmeasured(load))
    band = find_band(replica, speed, correction, doubt)
    notes = (doubt, describe_unlike(replica, correction, speed.running))
    ttft, tpot = times
    seconds = ttft + max(load.output_tokens - 1, 0) * tpot
    rate = load.concurrency * load.output_tokens / seconds
    return SpeedEstimate(
        ttft_s=spread(ttft, band.choose(fitted.ttft_bands)),
        tpot_s=_raise_low(spread(tpot, band.choose(fitted.tpot_bands)), find_least_tpot_s(replica, load, speed)),
        output_tokens_per_second=spread(rate, band.choose(fitted.throughput_bands)),
        basis=correction.basis,
        sources=correction.references,
        bound_by=_find_bound(speed),
        running=round(min(speed.running, max(load.concurrency, 1.0)), 1),
        notes=tuple(filter(None, notes)),
    )


def describe_doubt(speed: Speed, correction: Correction, unmeasured: str) -> str:
    """Return why the interval is a wide one that no measurement confirms; empty if rows have such loads.

    `unmeasured`: of `describe_unmeasured`.
    """
    if correction.basis == "measured":
        return ""
    if speed.is_prefill_bound:
        return (
            "prefill-bound: prompts need all that a step computes, and requests wait for their prompt. No measured row"
            " has such a load"
        )
    return f"no measured row has {unmeasured}" if unmeasured else ""


def find_band(
    replica: Replica, speed: Speed, correction: Correction, doubt: str = "", *, elsewhere: bool = True
) -> BandChoice:
    """Return the interval that applies. `doubt`: of `describe_doubt`. `elsewhere`: whether it is to hold for what other
    sources measured, too."""
    if correction.basis == "measured":
        return BandChoice("measured")
    if not elsewhere:
        return BandChoice(*_find_band_of_rows(replica, speed, correction, doubt))
    if has_wide_experts(replica) and (doubt or correction.confidence < 1):
        return BandChoice("wide_experts", 0.0 if doubt else correction.confidence)
    name, confidence = _find_band_of_rows(replica, speed, correction, doubt)
    return BandChoice(name, confidence, find_saturation(replica, speed.running), elsewhere=True)


def _find_band_of_rows(replica: Replica, speed: Speed, correction: Correction, doubt: str) -> tuple[str, float]:
    if doubt:
        return "other_gpu", 0.0
    if correction.confidence == 1:
        return "interpolated", 0.0
    return _find_band_of_model(replica, speed), correction.confidence


def _find_band_of_model(replica: Replica, speed: Speed) -> str:
    """Return the name of the interval without a measured row of the model on the GPU."""
    if any(count_rows_by_gpu()[gpu.id] < _MANY for gpu in replica.gpus):
        return "other_gpu"
    if replica.shape.pp > 1:
        is_fast = replica.link is None or replica.link.gb_per_s >= _FAST_ENOUGH_GB_PER_S
        return "pipeline" if is_fast else "other_gpu"
    if speed.limit:
        return "queued"
    return "sparse" if replica.model.experts else "dense"


def spread(mid: float, band: Band) -> Interval:
    """Return the interval of an estimate."""
    return Interval(low=_round(mid * band.low), mid=_round(mid), high=_round(mid * band.high))


def _raise_low(found: Interval, least: float) -> Interval:
    return replace(found, low=min(max(found.low, _round(least)), found.mid))


def find_high(mid: float, band: Band) -> float:
    """Return the pessimistic end of the interval of a duration."""
    return _round(mid * band.high)


def _round(value: float) -> float:
    return float(f"{value:.5g}")


def _find_bound(speed: Speed) -> str:
    if speed.limit:
        return speed.limit
    sums = {name: sum(speed.parts.get(term, 0.0) for term in terms) for name, terms in _GROUPS.items()}
    sums["overhead"] = sum(speed.parts.values()) - sum(sums.values())
    return max(sums, key=lambda name: sums[name])


def _describe_link(replica: Replica, speed: Speed) -> str:
    rate = replica.link.gb_per_s if replica.link else 0.0
    return (
        f"the activations of this load need {speed.link_use * rate:.3g} GB/s between the pipeline stages, and the link"
        f" carries {rate:.3g} GB/s. At most {load_assumptions().link_use_limit:.0%} of it can be used"
    )
