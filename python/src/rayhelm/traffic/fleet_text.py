"""Write measured traffic as a part of a fleet file."""

from collections.abc import Iterator, Mapping
from math import ceil, log10

import yaml

from rayhelm.traffic.summary import ModelTraffic

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
    yield f"      requestsPerSecond: {_round_up(traffic.peak_rate):g}"
    yield f"      inputTokens: {max(ceil(traffic.input_tokens), 1)}"
    if traffic.output_tokens:
        yield f"      outputTokens: {ceil(traffic.output_tokens)}"
    if traffic.cached_share and traffic.cached_share >= 0.01:
        yield f"      sharedPrefix: {min(traffic.cached_share, 1):.2f}"


def _round_up(rate: float) -> float:
    """Return at least `rate`, with two digits."""
    scale = 10 ** (int(log10(rate)) - (2 if rate < 1 else 1))
    return float(f"{ceil(rate / scale - 1e-9) * scale:.6g}")
