"""Service level objectives: availability, time to first token, time per output token.

A rule of a burn rate has a window of its own and compares with `factor * (1 - objective)`. `Scope()` and the recorded
series do the rest.
"""

from rayhelm.observe.queries import blocks, gateway, traffic
from rayhelm.observe.queries.blocks import WINDOW
from rayhelm.observe.queries.labels import GATEWAY, MODEL, SERVICE, By
from rayhelm.observe.queries.latency import TPOT, TTFT
from rayhelm.observe.queries.registry import query
from rayhelm.observe.queries.scope import Scope

__all__ = [
    "availability",
    "burn_rate",
    "gateway_availability",
    "late_first_tokens",
    "late_output_tokens",
    "tpot_in_time",
    "ttft_in_time",
]


@query(unit="ratio", idle="no data", first=True)
def availability(scope: Scope, window: str = WINDOW, by: By = SERVICE) -> str:
    """Share of HTTP requests without a status from 500, at the Serve proxies."""
    return f"1 - {traffic.error_ratio(scope, window, by)}"


@query(unit="ratio", idle="no data")
def gateway_availability(scope: Scope, window: str = WINDOW, by: By = GATEWAY) -> str:
    """Share of responses to clients without a status from 500, at the gateway."""
    return f"1 - {gateway.error_ratio(scope, window, by)}"


@query(unit="ratio", idle="no data")
def ttft_in_time(scope: Scope, window: str = WINDOW, by: By = MODEL, limit: float = 0.5) -> str:
    """Share of requests whose first token came within the limit (seconds)."""
    return blocks.share_within(limit, TTFT, scope, window, by=by)


@query(unit="ratio", idle="no data")
def tpot_in_time(scope: Scope, window: str = WINDOW, by: By = MODEL, limit: float = 0.05) -> str:
    """Share of requests whose mean time per output token was within the limit (seconds)."""
    return blocks.share_within(limit, TPOT, scope, window, by=by)


@query(unit="ratio", idle="no data")
def late_first_tokens(scope: Scope, window: str = WINDOW, by: By = MODEL, limit: float = 0.5) -> str:
    """Share of requests whose first token came after the limit (seconds)."""
    return f"1 - {ttft_in_time(scope, window, by, limit)}"


@query(unit="ratio", idle="no data")
def late_output_tokens(scope: Scope, window: str = WINDOW, by: By = MODEL, limit: float = 0.05) -> str:
    """Share of requests whose mean time per output token was above the limit (seconds)."""
    return f"1 - {tpot_in_time(scope, window, by, limit)}"


@query(unit="ratio", idle="no data", first=True)
def burn_rate(scope: Scope, window: str = "1h", by: By = SERVICE, objective: float = 0.999) -> str:
    """Speed at which errors use up the error budget of an availability objective: 1 uses all of it in the period of the
    objective."""
    return f"{traffic.error_ratio(scope, window, by)} / {round(1 - objective, 9)}"
