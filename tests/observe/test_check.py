"""The linter of PromQL: what it refuses, and that every query of ours passes."""

import inspect

import pytest

from rayhelm.observe.check import check_query, metrics_of
from rayhelm.observe.queries import Query, Scope, all_queries

TTFT = "ray_vllm_time_to_first_token_seconds"
ERRORS = "ray_serve_num_http_error_requests_total"

REFUSED = {
    "promql-syntax": "sum by (",
    "promql-metric": "sum(ray_vllm_num_requests_runing)",
    "promql-replaced": "sum(ray_serve_requests_queued)",
    "promql-label": 'sum(ray_vllm_num_requests_running{deployment="x"})',
    "promql-bucket": f'sum(rate({TTFT}_bucket{{le="0.6"}}[5m]))',
    "promql-rate": "sum(rate(ray_vllm_num_requests_running[5m]))",
    "promql-counter": "sum(ray_vllm_generation_tokens_total)",
    "promql-quantile": f"avg(histogram_quantile(0.9, sum by (le, model_name) (rate({TTFT}_bucket[5m]))))",
    "promql-sum": f"sum(rate({TTFT}_sum[5m])) / sum(rate({TTFT}_count[5m]))",
    "promql-absent": "absent(ray_vllm_num_requests_running)",
    "promql-once": "max(ray_vllm_engine_sleep_state)",
}
"""A query that breaks each rule."""

ALSO_REFUSED = {
    "selector without a name": ("promql-metric", '{job="x"}'),
    "histogram without a suffix": ("promql-metric", f"sum({TTFT})"),
    "suffix of a histogram on a gauge": ("promql-metric", "sum(ray_vllm_num_requests_running_sum)"),
    "label of by": ("promql-label", "sum by (deployment) (ray_vllm_num_requests_running)"),
    "label that an inner aggregation removed": (
        "promql-label",
        "sum by (pod) (sum by (model_name) (ray_vllm_num_requests_running))",
    ),
    "label of on": (
        "promql-label",
        "ray_vllm_num_requests_running / on (replica) ray_serve_replica_processing_queries",
    ),
    "label of group_left": (
        "promql-label",
        "ray_vllm_num_requests_running * on (WorkerId) group_left (reason) ray_serve_application_status",
    ),
    "delta of a counter": ("promql-rate", "delta(ray_vllm_generation_tokens_total[5m])"),
    "increase of a gauge over a subquery": ("promql-rate", "increase(max(ray_vllm_num_requests_waiting)[1h:1m])"),
    "count of a histogram without rate": ("promql-counter", f"sum({TTFT}_count)"),
    "quantile without le": (
        "promql-quantile",
        f"histogram_quantile(0.9, sum by (model_name) (rate({TTFT}_bucket[5m])))",
    ),
    "mean over time of a quantile": (
        "promql-quantile",
        f"avg_over_time(histogram_quantile(0.9, sum by (le) (rate({TTFT}_bucket[5m])))[1h:1m])",
    ),
    "absent over time of a counter": ("promql-absent", f"absent_over_time({ERRORS}[1h])"),
}

ACCEPTED = {
    "mean from a histogram with exact sums": (
        "sum(rate(autoscaler_update_time_seconds_sum[5m])) / sum(rate(autoscaler_update_time_seconds_count[5m]))"
    ),
    "absent of a metric that stays": "absent(ray_serve_application_status)",
    "count of counters": f"count({ERRORS})",
    "counter times zero": "0 * ray_vllm_prompt_tokens_total",
    "new series of a counter": f"{ERRORS} unless {ERRORS} offset 10m",
    "count of quantiles above a limit": (
        f"count(histogram_quantile(0.9, sum by (le, model_name) (rate({TTFT}_bucket[5m]))) > 1)"
    ),
    "label from label_replace": (
        'sum by (model) (label_replace(ray_vllm_num_requests_running, "model", "$1", "model_name", "(.+)"))'
    ),
    "variables of a dashboard": (
        'sum(rate(ray_vllm_generation_tokens_total{namespace=~"$namespace"}[$__rate_interval]))'
    ),
    "template of the adapter": "sum by (<<.GroupBy>>) (haproxy_backend_current_sessions{<<.LabelMatchers>>})",
    "bucket that exists": f'sum(rate({TTFT}_bucket{{le="0.5"}}[5m]))',
}


def rules(text: str) -> set[str]:
    return {problem.rule for problem in check_query(text)}


@pytest.mark.parametrize("rule", REFUSED)
def test_check_refuses_a_query_that_breaks_the_rule(rule: str) -> None:
    assert rule in rules(REFUSED[rule])


@pytest.mark.parametrize("case", ALSO_REFUSED)
def test_check_also_refuses(case: str) -> None:
    rule, text = ALSO_REFUSED[case]
    assert rule in rules(text)


@pytest.mark.parametrize("case", ACCEPTED)
def test_check_accepts(case: str) -> None:
    assert check_query(ACCEPTED[case]) == []


def test_problem_names_query_column_cause_and_fix() -> None:
    text = "ray_vllm_num_requests_running + ray_serve_requests_queued"
    (problem,) = check_query(text, name="queues.mine", file="rules.yaml", line=7)
    assert str(problem).startswith("rules.yaml:7: queues.mine: column 33: ray_serve_requests_queued does not exist.")
    assert "ray_serve_deployment_queued_queries" in problem.fix_text


def test_column_is_that_of_the_second_occurrence() -> None:
    text = "rate(ray_vllm_generation_tokens_total[5m]) / ray_vllm_generation_tokens_total"
    (problem,) = check_query(text)
    assert problem.rule == "promql-counter"
    assert "column 46:" in problem.message


def test_unknown_metric_is_refused_with_the_nearest_name() -> None:
    (problem,) = check_query("max(ray_vllm_num_request_running)")
    assert problem.fix_text == "ray_vllm_num_requests_running"


def test_fix_of_a_mean_is_accepted() -> None:
    (problem, *_) = check_query(f"sum(rate({TTFT}_sum[5m]))")
    assert check_query(problem.fix_text) == []


def test_metrics_of_a_query_are_those_of_the_catalog() -> None:
    assert metrics_of(f"sum(rate({TTFT}_bucket[5m])) + up") == {TTFT, "up"}


def arguments(query: "Query[...]") -> dict[str, str]:
    """Arguments of a dashboard; a query with a step takes windows with a number only."""
    parameters = inspect.signature(query.build).parameters
    return {"window": "$__rate_interval"} if "window" in parameters and "step" not in parameters else {}


@pytest.mark.parametrize("name", sorted(all_queries()))
def test_registered_query_passes_in_every_scope(name: str) -> None:
    query = all_queries()[name]
    scopes = (Scope(), Scope.dashboard(), Scope.of(namespace="search", service="chat", model="m/1", tenant="a"))
    for text in (*(query(scope) for scope in scopes), query(Scope.dashboard(), **arguments(query))):
        assert [str(problem) for problem in check_query(text, name=name)] == []


def test_every_subject_has_queries() -> None:
    assert len(all_queries()) > 120
    assert {name.partition(".")[0] for name in all_queries()} >= {"traffic", "latency", "queues", "gpu", "cost"}


@pytest.mark.parametrize("name", sorted(all_queries()))
def test_registered_query_has_a_description_and_a_default_for_every_argument(name: str) -> None:
    query = all_queries()[name]
    assert query.description.rstrip().endswith(".")
    _, *others = inspect.signature(query.build).parameters.values()
    assert all(each.default is not inspect.Parameter.empty for each in others)


@pytest.mark.parametrize("name", [name for name, query in sorted(all_queries().items()) if query.idle == "zero"])
def test_query_that_is_zero_when_idle_adds_zero_from_a_series_that_stays(name: str) -> None:
    assert "(0 * " in all_queries()[name](Scope())
