"""Error budgets of objectives that are series: one rule serves all models.

`slo` is `availability`, `ttft` or `tpot`. Chart platform writes `rayhelm:slo_objective`, `rayhelm:slo_window_hours`
and, for latencies, `rayhelm:slo_boundary`, whose label `le` is the bucket boundary at or above the target. `slo` of
dashboards, with limits as arguments, is in `slo`."""

from dataclasses import replace
from typing import Literal

from rayhelm.observe.queries import blocks
from rayhelm.observe.queries.labels import GATEWAY, GATEWAY_LABEL, MODEL, SERVICE, SERVICE_LABEL
from rayhelm.observe.queries.latency import OUTPUT, TPOT, TTFT
from rayhelm.observe.queries.registry import query
from rayhelm.observe.queries.scope import Scope

__all__ = [
    "HISTOGRAMS",
    "Latency",
    "error_share",
    "gateway_responses",
    "http_responses",
    "latency_requests",
    "requests_in_time",
    "used_budget",
]

Latency = Literal["ttft", "tpot"]

HISTOGRAMS: dict[Latency, str] = {"ttft": TTFT, "tpot": TPOT}
"""Histogram of each latency objective."""
KEYS = f"cluster, namespace, {SERVICE_LABEL}, {GATEWAY_LABEL}, model_name, slo"
"""Labels of an objective."""
WINDOW = "5m"
"""Window of the increases that longer windows are averages of."""


@query(unit="requests", idle="no data", first=True)
def latency_requests(scope: Scope, slo: Latency = "ttft") -> str:
    """Requests of the last 5 minutes that the histogram of an objective counted. The time per output token leaves out
    those of one token or none, which vLLM counts as 0 s."""
    counted = blocks.increase(HISTOGRAMS[slo], scope, WINDOW, by=MODEL, suffix="_count", zero=False)
    return _without_short(counted, scope) if slo == "tpot" else counted


@query(unit="requests", idle="no data", first=True)
def requests_in_time(scope: Scope, slo: Latency = "ttft") -> str:
    """Those of them within the boundary of the objective."""
    counted = blocks.increase(HISTOGRAMS[slo], scope, WINDOW, by=(*MODEL, "le"), suffix="_bucket", zero=False)
    boundary = blocks.vector("rayhelm:slo_boundary", scope, f'slo="{slo}"')
    chosen = f"{counted} and on (cluster, namespace, {SERVICE_LABEL}, model_name, le) {boundary}"
    within = blocks.aggregate("sum", chosen, MODEL)
    return _without_short(within, scope) if slo == "tpot" else within


def _without_short(counted: str, scope: Scope) -> str:
    """Without responses of one token, embeddings and scores. Two counters of one engine can be a scrape apart."""
    short = blocks.increase(OUTPUT, scope, WINDOW, 'le="1.0"', by=MODEL, suffix="_bucket", zero=False)
    return f"clamp_min(({counted}) - (({short}) or 0 * ({counted})), 0)"


@query(unit="requests", idle="no data", first=True)
def http_responses(scope: Scope, status: str = "...") -> str:
    """HTTP responses of the last 5 minutes at the proxies of a service, by the model of their application. `status`
    is a regular expression. Health checks are left out."""
    name, by = "ray_serve_num_http_requests_total", (*SERVICE, "application")
    matchers = ('application!=""', 'route!~"/-/.*"', f'status_code=~"{status}"')
    counted = blocks.increase(name, scope, WINDOW, *matchers, by=by, zero=False)
    models = blocks.vector("rayhelm:application_info", scope)
    on = f"on (cluster, namespace, {SERVICE_LABEL}, application)"
    return blocks.aggregate("sum", f"{counted} * {on} group_left (model_name) {models}", MODEL)


@query(unit="requests", idle="no data")
def gateway_responses(scope: Scope, code: str = ".*") -> str:
    """Responses of the last 5 minutes at the gateway, by served model. The gateway responds 503 itself if no endpoint
    does. `code` is a regular expression of classes: `5xx`."""
    by = (*GATEWAY, "proxy")
    counted = blocks.increase("haproxy_backend_http_responses_total", scope, WINDOW, f'code=~"{code}"', by=by)
    named = f'label_replace({counted}, "model_name", "$1", "proxy", "(.+):.+")'
    return blocks.aggregate("sum", named, (*GATEWAY, "model_name"))


@query(unit="ratio", idle="no data")
def error_share(scope: Scope, window: str = "1h") -> str:
    """Share of the requests of a window that missed their objective."""
    errors = _recorded("rayhelm:slo_errors:increase5m", scope)
    requests = _recorded("rayhelm:slo_requests:increase5m", scope)
    if window == WINDOW:
        return f"{errors} / ({requests} > 0)"
    return f"sum_over_time({errors}[{window}]) / (sum_over_time({requests}[{window}]) > 0)"


@query(unit="ratio", idle="no data")
def used_budget(
    scope: Scope, slo: str = "availability", long: str = "1h", short: str = "5m", budget: float = 0.02, least: int = 10
) -> str:
    """Error share of models that used a share of their error budget within the long window, and still use it in the
    short one. No data with fewer than `least` requests in the long window, where one error is a large share."""
    hours = {"m": 1 / 60, "h": 1, "d": 24}[long[-1]] * int(long[:-1])
    matcher = f'slo="{slo}"'
    period = _recorded("rayhelm:slo_window_hours", scope, matcher)
    limit = f"({period} * {budget / hours:.6g} * {_recorded('rayhelm:slo_budget', scope, matcher)})"
    errors = [_recorded(f"rayhelm:slo_errors:ratio{window}", scope, matcher) for window in (long, short)]
    first, second = (f"{share} > on ({KEYS}) group_left () {limit}" for share in errors)
    requests = _recorded("rayhelm:slo_requests:increase5m", scope, matcher, over="avg_over_time", window=long)
    return f"({first} and {second} and {requests} * {hours * 12:.6g} >= {least})"


def _recorded(name: str, scope: Scope, *matchers: str, over: str = "", window: str = "") -> str:
    """A recorded series. Availability at the gateway has no service, and at Serve no gateway, so a label that only
    has to exist is not required."""
    service, gateway = ("" if each == '!=""' else each for each in (scope.service, scope.gateway))
    return blocks.vector(name, replace(scope, service=service, gateway=gateway), *matchers, over=over, window=window)
