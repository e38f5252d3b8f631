"""The report: rows with costs. Its JSON is a contract (`rayhelm cost --format json`)."""

from datetime import datetime
from typing import Literal

from rayhelm.facts.closed import Closed

__all__ = ["CostPeriod", "CostReport", "CostRow", "Figures", "Kind", "TenantShare"]

Kind = Literal["model", "shared", "free", "total"]
"""`model`: replicas of one model. `shared`: GPUs that several models of a service use, which Prometheus alone cannot
divide. `free`: GPUs of worker pods that no healthy replica uses. `total`: the sum of all rows of the period."""


class Figures(Closed):
    """GPUs, traffic and costs of a period. None: unknown, or a division by zero."""

    gpu_hours: float | None = None
    """GPUs allocated, times hours."""
    cost: float | None = None
    """USD for them."""
    requests: float | None = None
    """Finished requests."""
    input_tokens: float | None = None
    """Prompt tokens, with those from the prefix cache."""
    output_tokens: float | None = None
    """Generated tokens."""
    cost_per_request: float | None = None
    """The whole cost over the requests, USD."""
    cost_per_million_input_tokens: float | None = None
    """The whole cost over the input tokens, USD. Not to be added to the one of output tokens."""
    cost_per_million_output_tokens: float | None = None
    """The whole cost over the output tokens, USD, as the plan computes it."""


class TenantShare(Closed):
    """What a tenant has of a row. The shares of a model sum up to 1."""

    tenant: str
    """As the gateway names it; `(unknown)` for requests past the gateway, `(not counted)` for tokens that were not."""
    share: float | None
    """Share in the tokens of the model, a prompt token as a quarter of a generated one; of the total: in its cost."""
    gpu_hours: float | None = None
    """GPU-hours by the share."""
    cost: float | None = None
    """USD by the share."""
    idle_cost: float | None = None
    input_tokens: float
    output_tokens: float


class CostRow(Closed):
    """One model of a service, the free GPUs of a service, or the total."""

    kind: Kind
    cluster: str = ""
    """Label `cluster` of the series; empty without one."""
    namespace: str = ""
    service: str = ""
    model: str = ""
    """Served model name."""
    actual: Figures
    idle_cost: float | None = None
    """Part of `cost` while no request was in flight: of replicas without one, and of GPUs without a replica, USD."""
    planned: Figures | None = None
    """The same for the planned load, over the hours with data; None without a fleet file."""
    difference_percent: Figures | None = None
    """Actual against planned: 25 means that the actual figure is 25 % larger."""
    reasons: tuple[str, ...] = ()
    """Why figures are missing."""
    tenants: tuple[TenantShare, ...] = ()
    """Tenants that sent the requests, the largest share first; only with `--by-tenant`."""


class CostPeriod(Closed):
    """One month, or the last hours."""

    month: str | None
    """`2026-10`; None for a period that is not a calendar month."""
    start: datetime
    end: datetime
    """Exclusive; before the end of the month if the month has not ended."""
    hours: int
    hours_with_data: int
    """Hours in which Prometheus has samples. Figures are sums over these hours, not scaled up to all hours."""
    data_from: datetime
    """Start of the first hour with data."""
    rows: tuple[CostRow, ...]
    total: CostRow

    @property
    def is_partial(self) -> bool:
        return self.hours_with_data < self.hours


class CostReport(Closed):
    """Costs of one or several periods."""

    prometheus: str
    """URL."""
    fleet: str | None
    """Path of the fleet file."""
    currency: Literal["USD"] = "USD"
    periods: tuple[CostPeriod, ...]

    @property
    def missing_prices(self) -> tuple[str, ...]:
        """Rows with GPUs and without cost, as `service/model: reason`."""
        return tuple(
            f"{row.service}/{row.model or row.kind}: {reason}"
            for period in self.periods
            for row in period.rows
            if row.actual.gpu_hours and row.actual.cost is None
            for reason in row.reasons[:1]
        )

    @property
    def uncounted_models(self) -> tuple[str, ...]:
        """Models with tokens of which no tenant has any, as `service/model`."""
        return tuple(
            f"{row.service}/{row.model}"
            for period in self.periods
            for row in period.rows
            if row.kind == "model" and row.actual.input_tokens and not row.tenants
        )

    @property
    def missing_series(self) -> tuple[str, ...]:
        """Models of the fleet without any series, as `service/model: reason`."""
        return tuple(
            f"{row.service}/{row.model}: {row.reasons[0]}"
            for period in self.periods
            for row in period.rows
            if row.kind == "model" and row.actual.gpu_hours is None and row.planned and row.reasons
        )
