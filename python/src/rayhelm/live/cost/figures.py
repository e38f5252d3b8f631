"""Costs of requests and tokens, by the formula of the plan, and the difference to planned figures."""

from rayhelm.live.cost.planned import PlannedModel
from rayhelm.live.cost.report import Figures
from rayhelm.planner.placement.cost import compute_token_price

__all__ = ["PER_UNIT", "add_figures", "compare", "complete", "plan_figures"]

PER_UNIT = ("cost_per_request", "cost_per_million_input_tokens", "cost_per_million_output_tokens")
_COUNTS = ("gpu_hours", "cost", "requests", "input_tokens", "output_tokens")


def complete(
    gpu_hours: float | None,
    cost: float | None,
    requests: float | None = None,
    input_tokens: float | None = None,
    output_tokens: float | None = None,
) -> Figures:
    """Return the figures with the cost of requests and tokens."""
    return Figures(
        gpu_hours=gpu_hours,
        cost=cost,
        requests=requests,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cost_per_request=cost / requests if cost is not None and requests else None,
        cost_per_million_input_tokens=_price_tokens(cost, input_tokens),
        cost_per_million_output_tokens=_price_tokens(cost, output_tokens),
    )


def _price_tokens(cost: float | None, tokens: float | None) -> float | None:
    """The planner's formula, over one hour: so many requests per second of one token each."""
    return compute_token_price(cost, tokens / 3600, 1) if tokens else None


def plan_figures(model: PlannedModel, hours: int) -> Figures:
    """Return the figures of the planned load over so many hours."""
    rate = model.requests_per_second
    requests = None if rate is None else rate * 3600 * hours
    figures = complete(
        gpu_hours=model.gpus * hours,
        cost=None if model.price_per_hour is None else model.price_per_hour * hours,
        requests=requests,
        input_tokens=None if requests is None or model.input_tokens is None else requests * model.input_tokens,
        output_tokens=None if requests is None or model.output_tokens is None else requests * model.output_tokens,
    )
    # The plan's own: if its replicas cannot serve the planned load, it counts what they can serve.
    return figures.model_copy(update={"cost_per_million_output_tokens": model.price_per_million_output_tokens})


def add_figures(parts: list[Figures]) -> Figures:
    """Return the sum. Unknown figures count as 0, unless all are unknown."""
    sums = {}
    for name in _COUNTS:
        known = [value for part in parts if (value := getattr(part, name)) is not None]
        sums[name] = sum(known) if known else None
    return complete(**sums)


def compare(actual: Figures, planned: Figures) -> Figures:
    """Return the difference of each figure in percent of the planned one."""
    pairs = {name: (getattr(actual, name), getattr(planned, name)) for name in Figures.model_fields}
    return Figures(
        **{name: (one / other - 1) * 100 for name, (one, other) in pairs.items() if one is not None and other}
    )
