"""Write measured traffic as a part of a fleet file."""

from collections.abc import Iterator, Mapping
from math import ceil, log10

import yaml

from rayhelm.fleet.traffic import Burst
from rayhelm.live.traffic.summary import ModelTraffic

__all__ = ["format_models"]


def format_models(found: Mapping[str, ModelTraffic]) -> str:
    """Return YAML of `models`, with `traffic` of each. A model without tokens in the log gets none, and a comment."""
    return "\n".join(["models:", *(line for model, each in found.items() for line in _list_lines(model, each))]) + "\n"


def _list_lines(model: str, traffic: ModelTraffic) -> Iterator[str]:
    name = yaml.safe_dump([model], default_flow_style=True, width=10_000).strip()[1:-1]
    if traffic.input_tokens is None:
        yield f"  # {name}: no line of the engine's log, so no tokens"
        return
    yield f"  {name}:"
    yield "    traffic:"
    yield from _list_rates(traffic)
    yield f"      inputTokens: {max(ceil(traffic.input_tokens), 1)}"
    yield from _list_percentile("inputTokensP95", traffic.input_tokens, traffic.input_tokens_p95)
    if traffic.output_tokens:
        yield f"      outputTokens: {ceil(traffic.output_tokens)}"
        yield from _list_percentile("outputTokensP95", traffic.output_tokens, traffic.output_tokens_p95)
    if traffic.cached_share and traffic.cached_share >= 0.01:
        yield f"      sharedPrefix: {min(traffic.cached_share, 1):.2f}"


def _list_rates(traffic: ModelTraffic) -> Iterator[str]:
    """Yield the rate with its bursts and its profile. Bursts are left out if the plan would have replicas for a lower
    rate than the measured percentile."""
    peak = _round_up(traffic.peak_rate)
    busiest = max(traffic.hourly_rates, default=0.0)
    burst = None
    if busiest and traffic.hour_dispersion is not None and 50 <= traffic.percentile <= 99.99:
        dispersion = float(f"{min(traffic.hour_dispersion, 10_000):.3g}")
        window = f"{traffic.window_s:g}s"
        burst = Burst.model_validate({"dispersion": dispersion, "window": window, "percentile": traffic.percentile})
        if burst.find_peak(_round_up(busiest)) < traffic.peak_rate:
            burst = None
    rate = _round_up(busiest) if burst else max(peak, _round_up(busiest)) if busiest else peak
    yield f"      requestsPerSecond: {rate:g}"
    if burst:
        window, percentile = f"{burst.window:g}s", f"{burst.percentile:g}"
        yield f"      burst: {{dispersion: {burst.dispersion:g}, window: {window}, percentile: {percentile}}}"
    if busiest:
        shares = ", ".join(f"{min(ceil(each / rate * 100 - 1e-9) / 100, 1):g}" for each in traffic.hourly_rates)
        yield f"      dailyProfile: [{shares}]"


def _list_percentile(key: str, mean: float, p95: float | None) -> Iterator[str]:
    if p95 and p95 >= ceil(mean):
        yield f"      {key}: {ceil(p95)}"


def _round_up(rate: float) -> float:
    """Return at least `rate`, with two digits."""
    scale = 10 ** (int(log10(rate)) - (2 if rate < 1 else 1))
    return float(f"{ceil(rate / scale - 1e-9) * scale:.6g}")
