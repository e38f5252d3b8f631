"""Divide the cost of a model among its tenants by their tokens.

A prompt token counts as a quarter of a generated one, as in the recorded `rayhelm:cost_by_tenant_usd_per_hour`. The
whole are the tokens of the engines, so replicas that do not count tokens do not raise the cost of the counted tenants.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from rayhelm.live.cost.report import CostRow, Figures, TenantShare
from rayhelm.live.cost.usage import Key, Usage
from rayhelm.observe.queries.tenants import PROMPT_WEIGHT

__all__ = ["NOT_COUNTED", "add_tenants", "divide_row"]

NOT_COUNTED = "(not counted)"
"""Tokens of the engines that no tenant has."""
_NOISE = 0.01
"""Share up to which the sums of both counters may differ: they are exported at different times."""


def divide_row(actual: Figures, idle_cost: float | None, model: Key, usage: Usage) -> tuple[TenantShare, ...]:
    """Return the shares of a model, largest first; none if its tokens are unknown or no tenant has any."""
    tokens = _list_tokens(model, usage)
    whole = _weigh(actual.input_tokens or 0.0, actual.output_tokens or 0.0)
    counted = sum(_weigh(*pair) for pair in tokens.values())
    if not whole or not counted:
        return ()
    if whole - counted > _NOISE * whole:
        read, made = (sum(pair[index] for pair in tokens.values()) for index in (0, 1))
        rest = ((actual.input_tokens or 0.0) - read, (actual.output_tokens or 0.0) - made)
        tokens[NOT_COUNTED] = (max(0.0, rest[0]), max(0.0, rest[1]))
        counted = sum(_weigh(*pair) for pair in tokens.values())
    shares = {tenant: _weigh(*pair) / counted for tenant, pair in tokens.items()}
    return tuple(
        TenantShare(
            tenant=tenant,
            share=share,
            gpu_hours=_multiply(actual.gpu_hours, share),
            cost=_multiply(actual.cost, share),
            idle_cost=_multiply(idle_cost, share),
            input_tokens=tokens[tenant][0],
            output_tokens=tokens[tenant][1],
        )
        for tenant, share in sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    )


def add_tenants(rows: Iterable[CostRow], cost: float | None) -> tuple[TenantShare, ...]:
    """Return the sum of each tenant over all models. A cost is unknown if that of one of its models is."""
    parts: dict[str, list[TenantShare]] = defaultdict(list)
    for row in rows:
        for part in row.tenants:
            parts[part.tenant].append(part)
    sums = [
        TenantShare(
            tenant=tenant,
            share=total / cost if cost and total is not None else None,
            gpu_hours=_sum([part.gpu_hours for part in found]),
            cost=total,
            idle_cost=_sum([part.idle_cost for part in found]),
            input_tokens=sum(part.input_tokens for part in found),
            output_tokens=sum(part.output_tokens for part in found),
        )
        for tenant, found in parts.items()
        for total in [_sum([part.cost for part in found])]
    ]
    return tuple(sorted(sums, key=lambda part: (-(part.cost or 0.0), part.tenant)))


def _list_tokens(model: Key, usage: Usage) -> dict[str, tuple[float, float]]:
    """Prompt and generated tokens of each tenant that has any."""
    counts: tuple[Mapping[Key, float], ...] = (usage.tenant_input_tokens, usage.tenant_output_tokens)
    names = {key[-1] for count in counts for key, value in count.items() if key[:-1] == model and value}
    read, made = counts
    return {name: (read.get((*model, name), 0.0), made.get((*model, name), 0.0)) for name in sorted(names)}


def _weigh(read: float, made: float) -> float:
    return made + PROMPT_WEIGHT * read


def _multiply(value: float | None, share: float) -> float | None:
    return None if value is None else value * share


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
