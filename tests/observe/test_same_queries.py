"""The scaling policy, the adapter and KEDA use the queries of the package."""

from pathlib import Path

import pytest

from charts import kit
from rayhelm.facts.metrics import load_exporters
from rayhelm.facts.scaling import load_scaling_rules
from rayhelm.observe.chart_queries import as_platform_queries
from rayhelm.observe.check import check_query
from rayhelm.observe.queries import Scope, autoscalers, gateway, latency, queues, scaling
from rayhelm.observe.queries.labels import SERVICE
from rayhelm.runtime.engine_queue.signals import Queries
from scaling.kit import GATEWAY, SERVICES, Answer, Series, answers, asked, numbers

CHAT = {"namespace": "search", "rayhelm_dev_service": "chat"}
OF_CHAT = Scope.of(namespace="search", service="chat")


# -- scaling policy --------------------------------------------------------------------------------------------------


def test_policy_sends_the_registered_queries() -> None:
    """The policy runs inside Ray, where this package is not importable."""
    policy, scope = Queries("session_a", 120), Scope.of(session="session_a")
    assert policy.scraped == scaling.scraped_deployments(scope)
    assert policy.waiting == scaling.waiting_by_replica(scope, f"{policy.window_s // 2}s")
    assert policy.first_tokens == scaling.first_tokens_by_replica(scope, f"{policy.window_s}s")


# -- adapter and KEDA ------------------------------------------------------------------------------------------------


QUERIES = as_platform_queries()


@pytest.mark.parametrize("name", load_scaling_rules().rules)
def test_rule_of_the_adapter_is_the_query_of_the_package(name: str) -> None:
    rule = load_scaling_rules().rules[name]
    (metric, *others) = rule.series
    scope = load_scaling_rules().scopes["gateway" if metric.startswith("haproxy_") else "service"]
    texts = [autoscalers.build_query(each, rule.aggregate, scope, is_term=bool(others)) for each in rule.series]
    by = autoscalers.GROUP_BY if scope.api == "Pods" else ", ".join(scope.by)
    assert numbers({**SERVICES, **GATEWAY})[name] == filled(" + ".join(texts), by)


def filled(template: str, by: str) -> str:
    """The text with the default window and quantile."""
    values = {autoscalers.WINDOW_SECONDS: "120", autoscalers.QUANTILE: "0.95", autoscalers.GROUP_BY: by}
    for name, value in values.items():
        template = template.replace(name, value)
    return template


@pytest.mark.parametrize("kind", ["queries", "terms"])
@pytest.mark.parametrize("aggregate", load_scaling_rules().aggregates)
def test_query_of_every_metric_passes_the_check(kind: str, aggregate: str) -> None:
    texts = QUERIES[kind].get(aggregate, {})
    found = [
        str(problem)
        for metric, text in texts.items()
        for problem in check_query(asked(filled(text, "namespace"), namespace="search"), name=metric)
    ]
    assert found == []


def test_every_metric_of_a_service_or_gateway_has_a_query() -> None:
    wanted = {
        name
        for exporter in load_exporters().values()
        if exporter.scraped in load_scaling_rules().scopes
        for name, metric in exporter.metrics.items()
        if metric.availability != "once" and metric.type in load_scaling_rules().aggregates.values()
    }
    assert {name for texts in QUERIES["queries"].values() for name in texts} == wanted


def test_query_of_a_term_has_a_default_where_the_query_alone_has_none() -> None:
    name = "ray_serve_autoscaling_total_requests"
    assert " or 0 * " not in QUERIES["queries"]["Sum"][name]
    assert " or 0 * " in QUERIES["terms"]["Sum"][name]


@pytest.mark.parametrize("name", load_scaling_rules().rules)
def test_rule_of_the_adapter_passes_the_check(name: str) -> None:
    query = numbers({**SERVICES, **GATEWAY})[name]
    assert [str(problem) for problem in check_query(query, name=name)] == []


def test_keda_of_the_gateway_sends_the_registered_query() -> None:
    scaler = kit.only(
        kit.rendered(chart="gateway", base="gateway/keda", release="edge", namespace="gw"), "ScaledObject"
    )
    (trigger,) = scaler["spec"]["triggers"]
    scope = Scope.of(namespace="gw", gateway="edge")
    assert trigger["metadata"]["query"] == gateway.requests_in_flight(scope, by=())


def busy() -> list[Series]:
    """A service under load until 300 s, then idle: the gauges of its engines vanish."""
    engine = {**CHAT, "model_name": "m", "ReplicaId": "r"}
    buckets = [("0.5", "0+10x20 200x60"), ("1.0", "0+20x20 400x60"), ("+Inf", "0+20x20 400x60")]
    return [
        Series("ray_serve_application_status", "6x80", {**CHAT, "application": "a"}),
        Series("ray_vllm_num_requests_waiting", "4x20 stale _x60", engine),
        Series("ray_vllm_kv_cache_usage_perc", "0.7x20 stale _x60", engine),
        Series("ray_serve_deployment_queued_queries", "3x20 0x60", {**CHAT, "deployment": "d"}),
        *(Series("ray_vllm_time_to_first_token_seconds_bucket", text, {**engine, "le": le}) for le, text in buckets),
    ]


@pytest.mark.parametrize(
    ("name", "query", "under_load", "when_idle"),
    [
        ("rayhelm_queue_length", queues.queue_length(OF_CHAT, by=SERVICE), 7, 0),
        ("rayhelm_kv_cache_usage", queues.kv_cache_usage(OF_CHAT, by=SERVICE), 0.7, 0),
        # The adapter needs a number to scale down; on a dashboard a quantile of nothing is no data.
        ("rayhelm_ttft_seconds", latency.time_to_first_token(OF_CHAT, "120s", SERVICE), 0.95, None),
    ],
)
def test_adapter_and_dashboard_have_the_same_result(
    name: str, query: str, under_load: float, when_idle: float | None, tmp_path: Path
) -> None:
    group = tuple(CHAT.items())
    of_adapter = asked(numbers(dict(SERVICES))[name], **CHAT)
    answers(tmp_path, of_adapter, busy(), Answer(285, {group: under_load}), Answer(900, {group: when_idle or 0}))
    idle = {} if when_idle is None else {group: when_idle}
    answers(tmp_path, query, busy(), Answer(285, {group: under_load}), Answer(900, idle))
