"""Queries of autoscalers for the charts platform and gateway, with placeholders that the templates fill in."""

from typing import Any

from rayhelm.facts.metrics import load_exporters
from rayhelm.facts.scaling import Aggregate, ScalingScope, load_scaling_rules
from rayhelm.observe.queries import Scope, gateway
from rayhelm.observe.queries.autoscalers import build_query, build_series_query

__all__ = ["as_gateway_queries", "as_platform_queries"]

SUMMED: tuple[Aggregate, ...] = ("Sum", "Rate")
"""Aggregates of rules with several series."""


def as_platform_queries() -> dict[str, Any]:
    """Return the selectors of the adapter by scope, and queries by aggregate and metric. `terms` has the metrics whose
    query differs in a rule with several series."""
    scaling = load_scaling_rules()
    queries: dict[str, dict[str, str]] = {aggregate: {} for aggregate in scaling.aggregates}
    terms: dict[str, dict[str, str]] = {aggregate: {} for aggregate in SUMMED}
    for name, aggregate, scope in _list_metrics():
        queries[aggregate][name] = build_query(name, aggregate, scope, is_term=False)
        term = build_query(name, aggregate, scope, is_term=True)
        if aggregate in SUMMED and term != queries[aggregate][name]:
            terms[aggregate][name] = term
    series_queries = {name: build_series_query(scope) for name, scope in scaling.scopes.items()}
    return {"seriesQueries": series_queries, "queries": queries, "terms": terms}


def as_gateway_queries() -> dict[str, str]:
    """Return the query of the gateway's KEDA scaler."""
    scope = Scope.of(namespace="<<.Namespace>>", gateway="<<.Gateway>>")
    return {"requestsInFlight": gateway.requests_in_flight(scope, by=())}


def _list_metrics() -> list[tuple[str, Aggregate, ScalingScope]]:
    """Each metric of services and gateways with each aggregate of its type. The rest is refused in the values."""
    scaling = load_scaling_rules()
    scopes: dict[str, ScalingScope] = dict(scaling.scopes.items())
    return [
        (name, aggregate, scopes[exporter.scraped])
        for exporter in load_exporters().values()
        if exporter.scraped in scopes
        for name, metric in exporter.metrics.items()
        if metric.availability != "once"
        for aggregate, metric_type in scaling.aggregates.items()
        if metric_type == metric.type
    ]
