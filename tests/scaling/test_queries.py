"""What each rule answers before the first request, under load, when idle, and when the service is gone."""

from functools import cache
from pathlib import Path

import pytest

from charts import kit
from rayhelm.facts.scaling import load_scaling_rules
from scaling.kit import GATEWAY, SERVICES, Answer, Series, answers, asked, check_expressions, check_scrapes, numbers

CHAT = {"namespace": "search", "rayhelm_dev_service": "chat"}
AUDIO = {"namespace": "models", "rayhelm_dev_service": "audio"}
OWN = {
    "rules": {
        "rayhelm_preemptions": {"series": ["ray_vllm_num_preemptions_total"], "aggregate": "Rate"},
        "rayhelm_prompt_tokens": {"series": ["ray_vllm_prompt_tokens_total"], "aggregate": "Rate"},
    }
}
OF_SERVICES = [*(name for name in load_scaling_rules().rules if name.startswith("rayhelm_")), *OWN["rules"]]


@cache
def queries() -> dict[str, str]:
    return numbers({**SERVICES, **GATEWAY, **OWN})


def of_chat(name: str) -> str:
    """What is asked for one service."""
    return asked(queries()[name], **CHAT)


def of(labels: dict[str, str], value: float) -> dict[tuple[tuple[str, str], ...], float]:
    return {tuple(labels.items()): value}


def stays(labels: dict[str, str], values: str = "6x80") -> Series:
    """The controller says so for as long as the service is there, with or without replicas."""
    return Series("ray_serve_application_status", values, {**labels, "application": "chat"})


def gauge(name: str, values: str, labels: dict[str, str] = CHAT, **more: str) -> Series:
    return Series(name, values, {**labels, "model_name": "m", **more})


def test_promtool_accepts_every_query(tmp_path: Path) -> None:
    assert len(queries()) == 6
    filled = {name: asked(query, namespace="search", rayhelm_dev_service="chat") for name, query in queries().items()}
    everything = kit.rendered(chart="platform", base="platform/everything", release="platform", namespace="x")
    keda = {
        item["metadata"]["name"]: item["spec"]["triggers"][0]["metadata"]["query"]
        for item in everything
        if item["kind"] == "ScaledObject"
    }
    gateway = kit.only(kit.rendered(chart="gateway", base="gateway/keda", release="gateway"), "ScaledObject")
    keda["gateway"] = gateway["spec"]["triggers"][0]["metadata"]["query"]
    assert len(keda) == 2
    check_expressions(tmp_path, filled | keda)


def test_promtool_refuses_an_invalid_query(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="parse error"):
        check_expressions(tmp_path, {"broken": "sum by ("})


def test_prometheus_accepts_the_scrape_configurations(tmp_path: Path) -> None:
    everything = kit.rendered(chart="platform", base="platform/everything", release="platform", namespace="x")
    text = kit.only(everything, "ConfigMap", "platform-scrape")["data"]["rayhelm.yaml"]
    check_scrapes(tmp_path, text)
    with pytest.raises(AssertionError, match="unknown"):
        check_scrapes(tmp_path, text.replace("role: pod", "role: pods"))


@pytest.mark.parametrize("name", OF_SERVICES)
def test_metric_is_zero_before_the_first_request(name: str, tmp_path: Path) -> None:
    answers(tmp_path, of_chat(name), [stays(CHAT)], Answer(600, of(CHAT, 0)))


@pytest.mark.parametrize("name", OF_SERVICES)
def test_removed_service_has_no_metric(name: str, tmp_path: Path) -> None:
    """No autoscaler should decide on unknown load."""
    answers(tmp_path, of_chat(name), [stays(CHAT, "6x4 stale _x80")], Answer(900, {}))


@pytest.mark.parametrize("name", OF_SERVICES)
def test_each_service_of_a_namespace_has_its_metric_without_a_selector(name: str, tmp_path: Path) -> None:
    other = {"namespace": "search", "rayhelm_dev_service": "rerank"}
    series = [stays(CHAT), stays(other), stays(AUDIO)]
    answers(tmp_path, asked(queries()[name], namespace="search"), series, Answer(600, of(CHAT, 0) | of(other, 0)))


def test_queue_sums_requests_in_engines_and_routers(tmp_path: Path) -> None:
    series = [
        stays(CHAT),
        gauge("ray_vllm_num_requests_waiting", "4x40", ReplicaId="a"),
        gauge("ray_vllm_num_requests_waiting", "3x40", ReplicaId="b"),
        gauge("ray_vllm_num_requests_waiting", "90x40", AUDIO),
        gauge("ray_serve_deployment_queued_queries", "5x40", handle="h"),
    ]
    answers(tmp_path, of_chat("rayhelm_queue_length"), series, Answer(300, of(CHAT, 12)))


def test_queue_of_an_idle_engine_is_zero_when_its_gauges_vanished(tmp_path: Path) -> None:
    series = [
        stays(CHAT),
        gauge("ray_vllm_num_requests_waiting", "4x4 0x1 stale _x70"),
        gauge("ray_serve_deployment_queued_queries", "2x4 0x70", handle="h"),
    ]
    query = of_chat("rayhelm_queue_length")
    answers(tmp_path, query, series, Answer(45, of(CHAT, 6)), Answer(300, of(CHAT, 0)))


def test_queue_of_routers_counts_when_engine_gauges_vanished(tmp_path: Path) -> None:
    series = [stays(CHAT), gauge("ray_serve_deployment_queued_queries", "7x70", handle="h")]
    answers(tmp_path, of_chat("rayhelm_queue_length"), series, Answer(300, of(CHAT, 7)))


def test_queue_of_engines_counts_without_a_router_queue(tmp_path: Path) -> None:
    series = [stays(CHAT), gauge("ray_vllm_num_requests_waiting", "7x70")]
    answers(tmp_path, of_chat("rayhelm_queue_length"), series, Answer(300, of(CHAT, 7)))


def test_kv_cache_usage_is_that_of_the_fullest_engine(tmp_path: Path) -> None:
    series = [
        stays(CHAT),
        gauge("ray_vllm_kv_cache_usage_perc", "0.4x8 stale _x70", ReplicaId="a"),
        gauge("ray_vllm_kv_cache_usage_perc", "0.9x4 stale _x70", ReplicaId="b"),
    ]
    query = of_chat("rayhelm_kv_cache_usage")
    expected = (Answer(45, of(CHAT, 0.9)), Answer(105, of(CHAT, 0.4)), Answer(400, of(CHAT, 0)))
    answers(tmp_path, query, series, *expected)


def first_tokens(values: str, le: str) -> Series:
    return gauge("ray_vllm_time_to_first_token_seconds_bucket", values, le=le)


def test_time_to_first_token_is_a_quantile_of_the_window(tmp_path: Path) -> None:
    """Of 20 requests each 15 s, all take between 0.5 and 1 s."""
    series = [stays(CHAT), first_tokens("0x80", "0.5"), first_tokens("0+20x80", "1.0"), first_tokens("0+20x80", "+Inf")]
    answers(tmp_path, of_chat("rayhelm_ttft_seconds"), series, Answer(900, of(CHAT, 0.975)))


def test_time_to_first_token_includes_the_first_requests_of_a_series(tmp_path: Path) -> None:
    """The series begins at 20, and never grows: `rate` and `increase` see nothing of it."""
    series = [stays(CHAT), *(first_tokens(f"_x20 {n}x80", le) for n, le in ((0, "0.5"), (20, "1.0"), (20, "+Inf")))]
    query = of_chat("rayhelm_ttft_seconds")
    answers(tmp_path, query, series, Answer(285, of(CHAT, 0)), Answer(360, of(CHAT, 0.975)), Answer(900, of(CHAT, 0)))


def test_time_to_first_token_of_an_idle_service_is_zero(tmp_path: Path) -> None:
    """The adapter would turn NaN into the smallest number."""
    series = [
        stays(CHAT),
        *(first_tokens(f"0+{n}x10 {10 * n}x80", le) for n, le in ((0, "0.5"), (9, "1.0"), (9, "+Inf"))),
    ]
    query = of_chat("rayhelm_ttft_seconds")
    answers(tmp_path, query, series, Answer(150, of(CHAT, 0.975)), Answer(900, of(CHAT, 0)))


def test_time_above_all_buckets_is_the_last_bound(tmp_path: Path) -> None:
    series = [stays(CHAT), first_tokens("0x80", "0.5"), first_tokens("0x80", "1.0"), first_tokens("0+20x80", "+Inf")]
    answers(tmp_path, of_chat("rayhelm_ttft_seconds"), series, Answer(900, of(CHAT, 1.0)))


def test_first_increment_of_a_counter_is_counted(tmp_path: Path) -> None:
    """Twelve preemptions at once, and none after: 12 in 120 s."""
    series = [stays(CHAT), gauge("ray_vllm_num_preemptions_total", "_x20 12x80")]
    query = of_chat("rayhelm_preemptions")
    answers(tmp_path, query, series, Answer(285, of(CHAT, 0)), Answer(330, of(CHAT, 0.1)), Answer(900, of(CHAT, 0)))


def test_growing_counter_gives_a_rate(tmp_path: Path) -> None:
    series = [stays(CHAT), gauge("ray_vllm_prompt_tokens_total", "0+30x80")]
    answers(tmp_path, of_chat("rayhelm_prompt_tokens"), series, Answer(900, of(CHAT, 2)))


def test_requests_in_flight_are_counted_by_pod(tmp_path: Path) -> None:
    def backend(proxy: str, pod: str, values: str) -> Series:
        labels = {"namespace": "gateway", "pod": pod, "proxy": proxy}
        return Series("haproxy_backend_current_sessions", values, labels)

    series = [
        backend("llama:stable", "a", "3x20"),
        backend("llama:canary", "a", "1x20"),
        backend("tenants", "a", "50x20"),
        backend("llama:stable", "b", "0x20"),
        backend("llama:stable", "c", "9x20"),
    ]
    query = queries()["haproxy_requests_in_flight"].replace("{<<.LabelMatchers>>", '{namespace="gateway",pod=~"a|b"')
    answers(tmp_path, asked(query), series, Answer(200, of({"pod": "a"}, 4) | of({"pod": "b"}, 0)))
