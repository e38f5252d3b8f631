"""Reasons of the planned load: its peak rate with bursts, and spare replicas."""

from collections.abc import Iterator

from rayhelm.fleet.traffic import Traffic
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.prefix_cache import estimate_prefix_hits
from rayhelm.planner.placement.spare_replicas import compute_availability, load_failure_rates
from rayhelm.planner.plan import Reason

__all__ = ["explain_burst", "explain_prefixes", "explain_spare", "format_figure", "format_load"]


def format_load(traffic: Traffic) -> str:
    return format_figure(traffic.peak_rate) if traffic.burst else f"{traffic.requests_per_second:g}"


def explain_burst(chosen: Candidate) -> Iterator[Reason]:
    traffic = chosen.model_spec.declared.traffic
    if traffic and traffic.burst:
        burst = traffic.burst
        because = (
            f"{burst.percentile:g} % of the windows of {burst.window:g} s have at most this rate, with a mean of"
            f" {traffic.requests_per_second:g} requests/s and a variance of {burst.dispersion:g} times the mean:"
            " quantile of a gamma distribution (Wilson and Hilferty), at least the one of a normal distribution"
        )
        numbers: dict[str, float | int | str] = {"dispersion": burst.dispersion, "percentile": burst.percentile}
        yield Reason(decision="peak_rate", chosen=f"{traffic.peak_rate:.3g}/s", because=because, numbers=numbers)


def explain_prefixes(chosen: Candidate) -> Iterator[Reason]:
    """Yield the part of the requests that finds its prefix, if the number of prefixes is known."""
    traffic, hits, result = chosen.model_spec.declared.traffic, chosen.capacity.prefix_hits, chosen.memory
    if not (traffic and traffic.prefixes and result) or hits is None:
        return
    lengths = chosen.model_spec.lengths
    prefix = lengths.prompt * lengths.shared
    numbers: dict[str, float | int | str] = {"prefixes": traffic.prefixes, "kv_cache_tokens": result.tokens}
    because = (
        f"{traffic.prefixes:,} prefixes of {prefix:,.0f} tokens and the {lengths.prompt - prefix + lengths.answer:,.0f}"
        f" other tokens of each request share a cache of {result.tokens:,} tokens, which evicts the oldest block (Che's"
        " approximation)"
    )
    roles, undivided = chosen.capacity.roles, chosen.capacity.undivided_hits
    if undivided is not None and hits > undivided:
        because += (
            f". A replica that gets all prefixes has {undivided:.0%}; routing by prefix divides them over"
            f" {chosen.model_spec.replicas(chosen.capacity.needed)} replicas, and the plan counts that"
        )
        numbers["undivided_hits"] = round(undivided, 3)
    elif roles and roles.prefill.replicas > 1:
        replicas = roles.prefill.replicas
        if divided := estimate_prefix_hits(chosen.model_spec, result.tokens, replicas):
            because += f". Routing by prefix divides them over {replicas} prefill replicas: {divided:.0%}, not counted"
            numbers["divided_hits"] = round(divided, 3)
    yield Reason(decision="prefix_hits", chosen=f"{hits:.0%}", because=because, numbers=numbers)


def explain_spare(chosen: Candidate) -> Iterator[Reason]:
    target, rates = chosen.model_spec.declared.slo.capacity_availability, load_failure_rates()
    if target is None:
        return
    gpus = chosen.split.shape.gpu_count
    up = compute_availability(gpus)
    because = (
        f"at least {chosen.capacity.needed} are up for {target:.7g} of the time if each is up for {up:.5f} of it, and"
        f" they fail independently: {rates.failures_per_gpu_hour:g} failures per GPU and hour"
        f" ({rates.failures_source}), {rates.repair_h:g} h until a replica serves again ({rates.repair_source})"
    )
    numbers: dict[str, float | int | str] = {"gpus_per_replica": gpus, "target": target}
    yield Reason(decision="spare_replicas", chosen=str(chosen.capacity.spare), because=because, numbers=numbers)


def format_figure(value: float) -> str:
    """Return two significant digits without an exponent."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
