"""Metrics for autoscaling: the queries of the Prometheus adapter and of KEDA, for each metric of a service or gateway.

An autoscaler needs a number while its target runs, so a metric without series counts as 0, also a quantile without
requests. If nothing of a target is scraped, there is no data, and no autoscaler decides. The texts are templates: the
adapter fills in `MATCHERS`, and `GROUP_BY` for pods; chart platform fills in the others.
"""

from rayhelm.facts.metrics import load_metrics
from rayhelm.facts.scaling import Aggregate, ScalingScope
from rayhelm.observe.queries import blocks
from rayhelm.observe.queries.labels import By
from rayhelm.observe.queries.scope import Scope

__all__ = ["GROUP_BY", "MATCHERS", "QUANTILE", "WINDOW_SECONDS", "build_query", "build_series_query"]

MATCHERS = "<<.LabelMatchers>>"
GROUP_BY = "<<.GroupBy>>"
WINDOW_SECONDS = "<<.WindowSeconds>>"
QUANTILE = "<<.Quantile>>"

_SCOPE = Scope(text=MATCHERS)
_BY: By = (GROUP_BY,)
_WINDOW = f"{WINDOW_SECONDS}s"


def build_series_query(scope: ScalingScope) -> str:
    """Return the selector by which the adapter finds the targets of a scope: a series that stays when they are idle."""
    return blocks.vector(scope.stays, Scope(), *(f'{label}!=""' for label in scope.by))


def build_query(name: str, aggregate: Aggregate, scope: ScalingScope, *, is_term: bool) -> str:
    """Return the query of a metric. `is_term`: it is added to others, and a sum needs all of its terms."""
    zero = f"0 * {scope.stays}{{{MATCHERS}}}"
    if aggregate == "Quantile":
        return _quantile(name, zero)
    has_zero = is_term or load_metrics()[name].availability != "always"
    if aggregate == "Rate":
        return blocks.aggregate("sum", _rate(name, zero) if has_zero else _over(name, "rate"), _BY)
    series = blocks.vector(name, _SCOPE, by=_BY)
    return blocks.aggregate("max" if aggregate == "Max" else "sum", f"{series} or {zero}" if has_zero else series, _BY)


def _rate(name: str, zero: str) -> str:
    return f"{_new(name)} / {WINDOW_SECONDS} or {_over(name, 'rate')} or {zero}"


def _quantile(name: str, zero: str) -> str:
    buckets = blocks.aggregate("sum", f"{_new(name, '_bucket')} or {_over(name, 'increase', '_bucket')}", ("le", *_BY))
    # Without observations the quantile is NaN, which `>= 0` drops.
    return f"(histogram_quantile({QUANTILE}, {buckets}) >= 0 or {blocks.aggregate('sum', zero, _BY)})"


def _new(name: str, suffix: str = "") -> str:
    """Series that are new in the window: `rate` and `increase` do not see the first increment."""
    series = blocks.vector(name, _SCOPE, suffix=suffix, by=_BY)
    return f"({series} unless {series} offset {_WINDOW})"


def _over(name: str, function: str, suffix: str = "") -> str:
    return blocks.vector(name, _SCOPE, suffix=suffix, over=function, window=_WINDOW, by=_BY)
