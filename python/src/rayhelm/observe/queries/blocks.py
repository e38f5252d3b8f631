"""Building blocks of queries. Each handles one property of the metrics, so that queries do not.

* Idle gaps: Ray drops a gauge 20 s after the engine's last step. `or_zero` adds 0 from a series that stays.
* First increments: a counter is absent before its first increment and starts at 1, which `increase` of PromQL does
  not see. Ours adds the value of a series that is new, if Prometheus scraped its target before it appeared.
* Missing numerators: `ratio` adds 0.
* Joins: vLLM's series have no application or deployment. If a query sums by one, it is joined by the id of the replica.
* Units: Serve counts in milliseconds, DCGM in MiB. Blocks convert to base units.
* Sums: `_sum` of Ray's histograms is an approximation, so there is no block for a mean.
"""

from bisect import bisect_left
from typing import Literal

from rayhelm.facts.metrics import Metric, exporter_of, load_metrics
from rayhelm.observe.queries.labels import (
    GATEWAY_LABEL,
    OWNER_LABEL,
    SERVICE_LABEL,
    TARGET_LABELS,
    WORKER_GROUP_LABEL,
    By,
)
from rayhelm.observe.queries.scope import Scope

__all__ = [
    "WINDOW",
    "aggregate",
    "gauge",
    "in_base_unit",
    "increase",
    "or_zero",
    "quantile",
    "quantile_above_one",
    "quantile_of_rare",
    "rate",
    "ratio",
    "share_within",
    "vector",
    "zero",
]

WINDOW = "5m"
"""Default window: at least four scrapes."""

Operator = Literal["sum", "max", "min", "avg", "count"]

_FACTORS = {
    "milliseconds": "/ 1000",
    "nanoseconds": "/ 1e9",
    "percent": "/ 100",
    "MiB": "* 1048576",
    "MB": "* 1e6",
    "MHz": "* 1e6",
    "milliwatts": "/ 1000",
    "millijoules": "/ 1000",
    "microjoules": "/ 1e6",
}
"""From the unit of a metric to the base unit."""

_STAYS = (
    ("ray_serve_application_status", {"cluster", "namespace", SERVICE_LABEL, OWNER_LABEL, "application"}),
    ("ray_serve_deployment_status", {"cluster", "namespace", SERVICE_LABEL, OWNER_LABEL, "application", "deployment"}),
    ("ray_node_mem_total", {"cluster", "namespace", SERVICE_LABEL, OWNER_LABEL, WORKER_GROUP_LABEL, "pod", "instance"}),
    # A counter, so it stays from the first request on.
    (
        "ray_vllm_prompt_tokens_total",
        {"cluster", "namespace", SERVICE_LABEL, OWNER_LABEL, WORKER_GROUP_LABEL, "pod", "model_name", "ReplicaId"},
    ),
    (
        "ray_rayhelm_prompt_tokens_total",
        {
            *("cluster", "namespace", SERVICE_LABEL, OWNER_LABEL, WORKER_GROUP_LABEL, "pod", "model_name", "ReplicaId"),
            "tenant",
        },
    ),
    ("haproxy_process_uptime_seconds", {"cluster", "namespace", GATEWAY_LABEL, "pod"}),
    ("haproxy_backend_current_sessions", {"cluster", "namespace", GATEWAY_LABEL, "pod", "proxy"}),
)
"""Series that are there as long as their target, with the labels that they can be grouped by. The first that fits is
used."""


def vector(
    name: str,
    scope: Scope,
    *matchers: str,
    suffix: str = "",
    over: str = "",
    window: str = "",
    by: By = ("namespace", "pod", "container"),
) -> str:
    """Series of a metric, or a function `over` a `window` of them.

    `namespace`, `pod` and `container` are those that the metric is about, also if Prometheus renamed them to
    `exported_...`; `by` names those that are used.
    """
    selectors = [f"{name}{suffix}{{{','.join(each)}}}" for each in _matcher_lists(name, scope, matchers)]
    texts = [f"{over}({selector}[{window}])" if over else selector for selector in selectors]
    text = " or ".join(text.replace("{}", "") for text in texts)
    for label in sorted(_renamed(name).intersection(by)):
        text = f'label_replace({text}, "{label}", "$1", "exported_{label}", "(.+)")'
    return text


def _matcher_lists(name: str, scope: Scope, matchers: tuple[str, ...]) -> list[list[str]]:
    every = [*scope.matchers(name), *matchers]
    ours = [each for each in every if each.startswith("namespace") and "namespace" in _renamed(name)]
    if not ours:
        return [every]
    others = [each for each in every if each not in ours]
    exported = [f"exported_{each}" for each in ours]
    return [[*others, *ours, 'exported_namespace=""'], [*others, *exported, 'exported_namespace!=""']]


def _renamed(name: str) -> frozenset[str]:
    """Labels of a metric that Prometheus renames to `exported_...` if it does not honor labels."""
    exporter = exporter_of(name)
    if exporter.scraped == "rules":
        return frozenset()
    return exporter.labels_of(name) & {"namespace", "pod", "container"}


def aggregate(operator: Operator, text: str, by: By) -> str:
    """Aggregate by labels; without labels over everything."""
    return f"{operator} by ({', '.join(by)}) ({text})" if by else f"{operator}({text})"


def gauge(
    name: str,
    scope: Scope,
    *matchers: str,
    by: By,
    operator: Operator = "sum",
    over: str = "",
    window: str = "",
    zero: bool = True,
) -> str:
    """A gauge in its base unit, or a function such as `max_over_time` of it. 0 while the engine is idle."""
    text = _joined(vector(name, scope, *matchers, over=over, window=window, by=by), name, scope, by)
    text = in_base_unit(aggregate(operator, text, by), load_metrics()[name])
    return or_zero(text, name, scope, by) if zero else text


def rate(name: str, scope: Scope, window: str, *matchers: str, by: By, zero: bool = True) -> str:
    """Increments of a counter per second. 0 before the first one."""
    text = _joined(vector(name, scope, *matchers, over="rate", window=window, by=by), name, scope, by)
    text = in_base_unit(aggregate("sum", text, by), load_metrics()[name])
    return or_zero(text, name, scope, by) if zero else text


def increase(name: str, scope: Scope, window: str, *matchers: str, by: By, suffix: str = "", zero: bool = True) -> str:
    """Increments of a counter in a window, including the first of a new series.

    A series counts as new only if a scrape of its target in the window came before it: after a gap of Prometheus
    nothing is new, and in the first window of a target all is that it counted since its first scrape.
    """
    grown = vector(name, scope, *matchers, suffix=suffix, over="increase", window=window, by=by)
    if load_metrics()[name].availability != "first":
        return in_base_unit(aggregate("sum", _joined(grown, name, scope, by), by), load_metrics()[name])
    now = vector(name, scope, *matchers, suffix=suffix, by=by)
    before = _offset(now, window)
    samples = vector(name, scope, *matchers, suffix=suffix, over="count_over_time", window=window, by=by)
    on = "(cluster, job, instance)"
    scrapes = f"max by {on} (sum_over_time(up[{window}]))"
    new = f"{now} unless {before} and ({samples} < on {on} group_left () {scrapes})"
    text = _joined(f"({new} or {grown})", name, scope, by)
    text = in_base_unit(aggregate("sum", text, by), load_metrics()[name])
    return or_zero(text, name, scope, by) if zero else text


def _offset(text: str, window: str) -> str:
    if text.startswith("label_replace("):
        raise ValueError("a counter with a namespace of its own cannot be read with an offset")
    return f"{text} offset {window}"


def quantile(q: float, name: str, scope: Scope, window: str, *matchers: str, by: By) -> str:
    """A quantile of a histogram in its base unit. No data without observations in the window."""
    return _quantile(q, vector(name, scope, *matchers, suffix="_bucket", over="rate", window=window), name, scope, by)


def quantile_above_one(q: float, name: str, scope: Scope, window: str, *matchers: str, by: By, amount: str) -> str:
    """A quantile of the requests whose `amount`, another histogram of the same requests, is above one.

    The others are observed as 0, so they are in every bucket. Counters of two scrapes can differ, so no bucket is below
    0."""
    buckets = vector(name, scope, *matchers, suffix="_bucket", over="rate", window=window)
    every = aggregate("sum", _joined(buckets, name, scope, by), ("le", *by))
    small = vector(amount, scope, *matchers, 'le="1.0"', suffix="_bucket", over="rate", window=window)
    few = aggregate("sum", _joined(small, amount, scope, by), by)
    none = f"0 * {_count(name, scope, window, matchers, by)}"
    above = f"clamp_min({every} - on ({', '.join(by)}) group_left () ({few} or {none}), 0)"
    return f"{in_base_unit(f'histogram_quantile({q}, {above})', load_metrics()[name])} >= 0"


def quantile_of_rare(q: float, name: str, scope: Scope, window: str, *matchers: str, by: By) -> str:
    """A quantile of a histogram that gets few observations, often one per series, such as the start of a replica.

    `rate` does not see the first observation of a series, so a series that is new in the window counts with all that it
    has.
    """
    grown = vector(name, scope, *matchers, suffix="_bucket", over="increase", window=window)
    now = vector(name, scope, *matchers, suffix="_bucket")
    return _quantile(q, f"({now} unless {_offset(now, window)} or {grown})", name, scope, by)


def _quantile(q: float, buckets: str, name: str, scope: Scope, by: By) -> str:
    text = f"histogram_quantile({q}, {aggregate('sum', _joined(buckets, name, scope, by), ['le', *by])})"
    # Without observations the quantile is NaN, which `>= 0` drops.
    return f"{in_base_unit(text, load_metrics()[name])} >= 0"


def share_within(bound: float, name: str, scope: Scope, window: str, *matchers: str, by: By) -> str:
    """Share of observations up to a bound, in the base unit. Between two buckets it is interpolated, as in
    `histogram_quantile`. No data without observations. Raises ValueError if the histogram cannot tell."""
    within = _count_within(bound, name, scope, window, matchers, by)
    return ratio(within, _count(name, scope, window, matchers, by))


def _count(name: str, scope: Scope, window: str, matchers: tuple[str, ...], by: By) -> str:
    counted = vector(name, scope, *matchers, suffix="_count", over="rate", window=window)
    return aggregate("sum", _joined(counted, name, scope, by), by)


def _count_within(bound: float, name: str, scope: Scope, window: str, matchers: tuple[str, ...], by: By) -> str:
    metric = load_metrics()[name]
    limit = bound * 1000 if metric.unit == "milliseconds" else bound
    if not metric.buckets or limit > metric.buckets[-1]:
        last = (
            f"its last bucket is {metric.buckets[-1]}" if metric.buckets else "its buckets depend on the configuration"
        )
        raise ValueError(f"{name} cannot tell the share of observations up to {bound}: {last}")

    def up_to(le: float) -> str:
        counted = vector(name, scope, *matchers, f'le="{float(le)}"', suffix="_bucket", over="rate", window=window)
        return aggregate("sum", _joined(counted, name, scope, by), by)

    index = bisect_left(metric.buckets, limit)
    if metric.buckets[index] == limit:
        return up_to(limit)
    high = metric.buckets[index]
    low = metric.buckets[index - 1] if index else 0.0
    part = round((limit - low) / (high - low), 4)
    if not index:
        return f"{part} * {up_to(high)}"
    return f"({1 - part:.4g} * {up_to(low)} + {part} * {up_to(high)})"


def ratio(numerator: str, denominator: str) -> str:
    """A ratio of two results with the same labels. 0 if the numerator is absent, no data if the denominator is 0."""
    return f"({numerator} or 0 * {_grouped(denominator)}) / ({_grouped(denominator)} > 0)"


def _grouped(text: str) -> str:
    """Add parentheses if the text has an operator outside of them."""
    depth = 0
    for index, character in enumerate(text):
        depth += {"(": 1, ")": -1, "{": 1, "}": -1}.get(character, 0)
        if character == ")" and not depth and index < len(text) - 1:
            return text if text[index + 1 : index + 3] == " (" else f"({text})"
    return text


def or_zero(text: str, name: str, scope: Scope, by: By) -> str:
    """Add 0 for targets that run but have no such series now. Unchanged if no series that stays has all the labels."""
    if load_metrics()[name].availability in ("always", "device", "once"):
        return text
    default = zero(exporter_of(name).scraped, scope, by)
    return f"{text} or {default}" if default else text


def zero(scraped: str, scope: Scope, by: By) -> str:
    """0 for each group of labels whose target runs; empty if no series that stays has all the labels."""
    for name, available in _STAYS:
        if exporter_of(name).scraped == scraped and available.issuperset(by):
            return aggregate("max", f"0 * {vector(name, scope)}", by)
    return ""


def _joined(text: str, name: str, scope: Scope, by: By) -> str:
    """Add the labels `application` and `deployment` where a metric has none but the id of its replica. Raises
    ValueError for labels that cannot be had."""
    exporter = exporter_of(name)
    own = exporter.labels_of(name) | TARGET_LABELS[exporter.scraped]
    own |= {"le"} if load_metrics()[name].type == "histogram" else set()
    missing = [label for label in by if label not in own]
    if not missing:
        return text
    if "ReplicaId" not in own or not {"application", "deployment"}.issuperset(missing):
        raise ValueError(f"{name} has no label {', '.join(missing)}")
    on = ("cluster", "namespace", "ReplicaId")
    replicas = (
        f'label_replace({vector("ray_serve_deployment_replica_healthy", scope)}, "ReplicaId", "$1", "replica", "(.+)")'
    )
    labels = aggregate("max", f"0 * {replicas} + 1", [*on, *missing])
    return f"{text} * on ({', '.join(on)}) group_left ({', '.join(missing)}) {labels}"


def in_base_unit(text: str, metric: Metric) -> str:
    factor = _FACTORS.get(metric.unit)
    return f"{text} {factor}" if factor else text
