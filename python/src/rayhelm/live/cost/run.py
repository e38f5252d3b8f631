"""A report from a Prometheus: check it, measure each period, and build the rows."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.fleet.nearest import did_you_mean, nearest
from rayhelm.live.cost.build import build_period
from rayhelm.live.cost.client import PrometheusClient
from rayhelm.live.cost.periods import Period
from rayhelm.live.cost.planned import PlannedService, plan_costs
from rayhelm.live.cost.report import CostPeriod, CostReport
from rayhelm.live.cost.usage import Usage, measure_usage
from rayhelm.observe.queries import Scope, cost
from rayhelm.observe.queries.labels import SERVICE_LABEL

__all__ = ["build_report"]

_SERVE = "ray_serve_deployment_replica_healthy"
_LOOK_BACK = timedelta(days=400)


def build_report(
    client: PrometheusClient,
    periods: Sequence[Period],
    fleet: Path | None,
    show: Callable[[str], None],
    *,
    by_tenant: bool = False,
) -> CostReport:
    """Measure all periods. Raises FleetError without data or series, and MissingError."""
    services = plan_costs(fleet) if fleet else None
    client.check()
    return CostReport(
        prometheus=client.url,
        fleet=str(fleet) if fleet else None,
        periods=tuple(_build(client, period, services, show, by_tenant) for period in periods),
    )


def _build(
    client: PrometheusClient,
    period: Period,
    services: dict[str, PlannedService] | None,
    show: Callable[[str], None],
    by_tenant: bool,
) -> CostPeriod:
    usage = measure_usage(client, period, show, by_tenant=by_tenant)
    if usage.data_from is None:
        raise FleetError(_describe_empty(client, period))
    if not usage.services:
        raise FleetError(_describe_unscraped(client, usage))
    if services is not None:
        names = {key[2] for key in usage.services}
        if not names & services.keys():
            raise FleetError(_describe_unknown(client, services, names))
    return build_period(usage, services)


def _describe_empty(client: PrometheusClient, period: Period) -> Problem:
    first = _find_first_day(client, period.end)
    since = f"; its data begins on {first:%Y-%m-%d}" if first else ""
    message = f"{client.url} has no data from {_text(period.start)} to {_text(period.end)}{since}"
    fix = Fix.advice(
        f"give a later period: --month {first:%Y-%m}"
        if first
        else "ask the store that keeps old data, such as Thanos or Mimir, or raise --storage.tsdb.retention.time"
    )
    return Problem(message, fix=fix)


def _find_first_day(client: PrometheusClient, until: datetime) -> datetime | None:
    """Return the first day with data, as far as one query finds it."""
    now = datetime.now(UTC)
    found = client.query_range(cost.scraped_targets(Scope(), "1d"), now - _LOOK_BACK, now, 86_400)
    days = sorted(at for series in found for at in series.values)
    return datetime.fromtimestamp(days[0], UTC) - timedelta(days=1) if days else None


def _describe_unscraped(client: PrometheusClient, usage: Usage) -> Problem:
    names = client.list_values("__name__")
    near = nearest(_SERVE, names)
    known = f"; the nearest of its {len(names)} metrics are {', '.join(f'`{name}`' for name in near)}" if near else ""
    message = (
        f"{client.url} has no series `{_SERVE}` from {_text(usage.period.start)} to {_text(usage.period.end)}{known}"
    )
    fix = Fix.advice("let it scrape the Ray pods: `scraping.kind: PodMonitor` of chart ray-service")
    return Problem(message, fix=fix)


def _describe_unknown(client: PrometheusClient, services: dict[str, PlannedService], names: set[str]) -> Problem:
    if names == {""}:
        message = f"the series of {client.url} have no label `{SERVICE_LABEL}`, so they belong to no service"
        fix = "add the label to the targets: `podTargetLabels` of the PodMonitor, or `labels` of a static target"
        return Problem(message, fix=Fix.advice(fix))
    wanted = ", ".join(f"`{name}`" for name in services)
    hints = {hint for name in services if (hint := did_you_mean(name, sorted(names - {""})))}
    message = f"{client.url} has no series of the services of the fleet: {wanted}; {'; '.join(sorted(hints))}"
    return Problem(message, fix=Fix.advice(f"give the Prometheus that scrapes {wanted}, or another fleet file"))


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%MZ}"
