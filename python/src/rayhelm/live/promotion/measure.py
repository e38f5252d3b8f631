"""Requests of two versions in a period, from Prometheus."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from rayhelm.deploy.compose.release_names import GATEWAY
from rayhelm.errors import MissingError
from rayhelm.fleet.models import STABLE
from rayhelm.live.cost.client import PrometheusClient, Series
from rayhelm.live.cost.periods import HOUR, MINUTE, SHORTEST, Period
from rayhelm.live.promotion.subject import Subject
from rayhelm.observe.queries import Scope, gateway, versions
from rayhelm.observe.queries.labels import SERVICE_LABEL

__all__ = ["Counts", "Measured", "measure_versions"]

_MOST_MISSING = 0.1
"""Share of the period that may be without data."""


@dataclass(frozen=True)
class Counts:
    """Requests of one version."""

    responses: int = 0
    """At the gateway."""
    server_errors: int = 0
    """Those of them with a status from 500."""
    finished: int = 0
    """Requests that the engines finished."""
    engine_errors: int = 0
    """Those of them that ended with an error, also after the status was sent."""
    first_tokens: Mapping[float, int] = field(default_factory=dict)
    """Requests by the upper bound of their time to first token, seconds; each has those below it."""
    output_tokens: Mapping[float, int] = field(default_factory=dict)
    """The same for the mean time per output token."""


@dataclass(frozen=True)
class Measured:
    """What Prometheus has of a period."""

    new: Counts
    present: Counts
    all_responses: int
    """Of all versions of the name, at the gateways."""
    endpoints: int | None
    """Endpoints of the new version that are available now; None if a gateway does not have the version."""
    data_from: datetime
    """Start of the data in the period."""
    missing: timedelta
    """Time without data after it."""


def measure_versions(client: PrometheusClient, subject: Subject, period: Period) -> Measured:
    """Raises MissingError if Prometheus does not answer, has no series of the gateway, or lacks a part of them."""
    window = f"{period.minutes}m"
    gateways, services = _scope_of_gateways(subject), _scope_of_services(subject)

    def read(query: str) -> list[Series]:
        found = client.query_range(query, period.end, period.end, 60)
        if wrong := next((each for each in found if not _is_count(each)), None):
            raise MissingError(
                f"{client.url} has a series without a number of requests: {dict(wrong.labels)}",
                "look in Prometheus at what the pods of this series export; the weight stays",
            )
        return found

    data_from, missing = _check_coverage(client, subject, period, gateways)
    responses = [each for each in read(versions.responses(gateways, window)) if _is_of_gateway(each, subject)]
    finished, first, output = (
        read(query(services, window)) for query in (versions.finished, versions.first_tokens, versions.output_tokens)
    )
    endpoints = [each for each in read(gateway.available_endpoints(gateways)) if _is_of_gateway(each, subject)]
    own = [_value(each) for each in endpoints if each.labels["proxy"] == subject.backend_of(subject.version)]

    def count(version: str, of: frozenset[tuple[str, str]]) -> Counts:
        at_gateway = [each for each in responses if each.labels["proxy"] == subject.backend_of(version)]
        engines = [each for each in finished if _service_of(each) in of]
        return Counts(
            responses=_sum(at_gateway),
            server_errors=_sum(each for each in at_gateway if each.labels.get("code") == "5xx"),
            finished=_sum(engines),
            engine_errors=_sum(each for each in engines if each.labels.get("finished_reason") == "error"),
            first_tokens=_sum_buckets(each for each in first if _service_of(each) in of),
            output_tokens=_sum_buckets(each for each in output if _service_of(each) in of),
        )

    return Measured(
        new=count(subject.version, subject.services),
        present=count(STABLE, subject.present_services),
        all_responses=_sum(responses),
        endpoints=int(min(own)) if own else None,
        data_from=data_from,
        missing=missing,
    )


def _scope_of_gateways(subject: Subject) -> Scope:
    return Scope(namespace=_any(namespace for namespace, _ in subject.gateways), gateway=f'="{GATEWAY}"')


def _scope_of_services(subject: Subject) -> Scope:
    every = subject.services | subject.present_services
    return Scope(
        namespace=_any(namespace for namespace, _ in every),
        service=_any(service for _, service in every),
        model=_any([subject.name]),
        cluster=_any_cluster(subject),
    )


def _any(names: Iterable[str]) -> str:
    """A matcher for one of the names, none of which has a character with a meaning in regular expressions but `.`."""
    escaped = (name.replace(".", "[.]") for name in sorted(set(names)))
    return f'=~"{"|".join(escaped)}"'


def _any_cluster(subject: Subject) -> str:
    labels = {label for _, label in subject.gateways}
    return _any(labels) if "" not in labels else ""


def _is_of_gateway(series: Series, subject: Subject) -> bool:
    labels = series.labels
    own = any(
        labels.get("namespace") == namespace and (not cluster or labels.get("cluster") == cluster)
        for namespace, cluster in subject.gateways
    )
    return own and labels.get("proxy", "").startswith(subject.backend_of(""))


def _service_of(series: Series) -> tuple[str, str]:
    return series.labels.get("namespace", ""), series.labels.get(SERVICE_LABEL, "")


def _is_count(series: Series) -> bool:
    """Return whether the value is a finite number, and a bucket has a bound: a server can export anything."""
    bound = series.labels.get("le", "+Inf")
    has_bound = bound == "+Inf" or bool(re.fullmatch(r"[0-9]+(\.[0-9]+)?(e[-+]?[0-9]{1,2})?", bound))
    return has_bound and len(series.values) == 1 and 0 <= _value(series) < float("inf")


def _value(series: Series) -> float:
    return next(iter(series.values.values()))


def _sum(found: Iterable[Series]) -> int:
    """Whole requests: `increase` extrapolates to the ends of the window."""
    return round(sum(map(_value, found)))


def _sum_buckets(found: Iterable[Series]) -> dict[float, int]:
    totals: dict[float, float] = {}
    for series in found:
        bound = float(series.labels["le"])
        totals[bound] = totals.get(bound, 0.0) + _value(series)
    return {bound: round(total) for bound, total in sorted(totals.items())}


def _check_coverage(
    client: PrometheusClient, subject: Subject, period: Period, scope: Scope
) -> tuple[datetime, timedelta]:
    """Return the start of the data, and the time without data after it. Raises MissingError."""
    step_s = 60 * (1 + period.hours // 24)
    found = client.query_range(gateway.available_endpoints(scope), period.start, period.end, step_s)
    by_gateway: dict[tuple[str | None, str | None], set[float]] = {}
    for series in found:
        if _is_of_gateway(series, subject):
            key = series.labels.get("cluster"), series.labels.get("namespace")
            by_gateway.setdefault(key, set()).update(series.values)
    if not by_gateway:
        raise MissingError(
            f"{client.url} has no series `haproxy_backend_active_servers` of `{subject.name}` in the gateway from"
            f" {_text(period.start)} to {_text(period.end)}",
            "let it scrape the gateway: `scraping` of chart gateway, `prometheus` of the cluster in the fleet file;"
            " rayhelm doctor --prometheus URL shows the targets",
        )
    starts, gaps = zip(*(_find_gaps(at, period, step_s) for at in by_gateway.values()), strict=True)
    longest = max(gaps, key=lambda gap: gap[0])
    _check_gap(client, period, longest, timedelta(seconds=step_s))
    return min(starts), longest[0]


def _find_gaps(at: set[float], period: Period, step_s: int) -> tuple[datetime, tuple[timedelta, datetime, datetime]]:
    """Return the start of the data; and the time without data after it, with the first and the last moment of it."""
    begin = int(min(at))
    expected = range(begin, int(period.end.timestamp()) + 1, step_s)
    absent = [moment for moment in expected if float(moment) not in at]
    first, last = (absent[0], absent[-1]) if absent else (begin, begin)
    moments = [datetime.fromtimestamp(moment, UTC) for moment in (begin, first, last)]
    return moments[0], (timedelta(seconds=len(absent) * step_s), moments[1], moments[2])


def _check_gap(
    client: PrometheusClient, period: Period, gap: tuple[timedelta, datetime, datetime], step: timedelta
) -> None:
    missing, first, last = gap
    is_at_the_end = bool(missing) and last > period.end - step
    if missing <= (period.end - period.start) * _MOST_MISSING and not is_at_the_end:
        return
    since = period.end - last
    later = f"{since // HOUR}h" if since >= HOUR else f"{since // MINUTE}m"
    raise MissingError(
        f"{client.url} has no data of the gateway for {missing // MINUTE} of {period.minutes} minutes, from"
        f" {_text(first)} to {_text(last)}; the weight stays",
        f"give a period after it: --last {later}" if since >= SHORTEST else "let Prometheus scrape again, and wait",
    )


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%MZ}"
