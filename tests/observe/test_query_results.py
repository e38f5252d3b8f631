"""What queries return under load, when idle, after a first increment, and after a gap; computed by promtool."""

from pathlib import Path

import pytest

from rayhelm.observe.queries import (
    Scope,
    blocks,
    conditions,
    cost,
    gateway,
    gpu,
    kubernetes,
    labels,
    latency,
    model_cost,
    objectives,
    queues,
    scaling,
    slo,
    tenants,
    traffic,
)
from scaling.kit import Answer, Series, answers

CHAT = {"namespace": "search", "rayhelm_dev_service": "chat"}
MODEL = {**CHAT, "model_name": "m"}
TARGET = {"job": "search/chat", "instance": "10.0.0.1:8080"}
EVERYTHING = Scope()
LATER = 900
"""Seconds after which gauges have vanished, and windows are full."""


def of(group: dict[str, str], value: float) -> dict[tuple[tuple[str, str], ...], float]:
    return {tuple(group.items()): value}


def series(name: str, values: str, group: dict[str, str] = MODEL, **more: str) -> Series:
    return Series(name, values, {**group, **TARGET, **more})


STATUS = series("ray_serve_application_status", "6x80", CHAT, application="a")
UP = Series("up", "1x80", TARGET)
TOKENS = series("ray_vllm_prompt_tokens_total", "0+30x80", ReplicaId="r1")


# -- idle gaps -------------------------------------------------------------------------------------------------------


def test_gauge_of_a_model_is_zero_when_the_engine_is_idle(tmp_path: Path) -> None:
    vanished = series("ray_vllm_num_requests_running", "5x4 0x1 stale _x70", ReplicaId="r1")
    query = queues.running(EVERYTHING)
    answers(tmp_path, query, [vanished, TOKENS], Answer(45, of(MODEL, 5)), Answer(LATER, of(MODEL, 0)))


def test_gauge_of_a_service_is_zero_before_the_first_request(tmp_path: Path) -> None:
    answers(tmp_path, queues.waiting(EVERYTHING, by=labels.SERVICE), [STATUS], Answer(LATER, of(CHAT, 0)))


def test_gauge_of_a_service_that_is_gone_has_no_data(tmp_path: Path) -> None:
    gone = series("ray_serve_application_status", "6x4 stale _x70", CHAT, application="a")
    answers(tmp_path, queues.waiting(EVERYTHING, by=labels.SERVICE), [gone], Answer(LATER, {}))


def test_queue_length_has_the_queue_of_serve_when_the_engine_is_idle(tmp_path: Path) -> None:
    queued = series("ray_serve_deployment_queued_queries", "7x80", CHAT, application="a", deployment="d")
    answers(tmp_path, queues.queue_length(EVERYTHING), [STATUS, queued], Answer(LATER, of(CHAT, 7)))


def test_request_rate_leaves_out_health_checks(tmp_path: Path) -> None:
    name = "ray_serve_num_http_requests_total"
    clients = series(name, "0+30x80", CHAT, application="a", route="/a/v1")
    probes = series(name, "0+90x80", CHAT, application="", route="/-/healthz")
    answers(tmp_path, traffic.request_rate(EVERYTHING), [STATUS, clients, probes], Answer(LATER, of(CHAT, 2)))


# -- first increments ------------------------------------------------------------------------------------------------

FIRST_ERROR = {"application": "a", "route": "/a/v1", "error_code": "500"}


def test_increase_counts_the_first_error_of_a_series(tmp_path: Path) -> None:
    first = series("ray_serve_num_http_error_requests_total", "_x50 1x30", CHAT, **FIRST_ERROR)
    query = traffic.errors(EVERYTHING)
    answers(tmp_path, query, [STATUS, UP, first], Answer(700, of(CHAT, 0)), Answer(LATER, of(CHAT, 1)))


def test_increase_counts_nothing_new_after_a_gap_of_prometheus(tmp_path: Path) -> None:
    old = series("ray_serve_num_http_error_requests_total", "_x50 400x30", CHAT, **FIRST_ERROR)
    up = Series("up", "_x50 1x30", TARGET)
    answers(tmp_path, traffic.errors(EVERYTHING), [STATUS, up, old], Answer(LATER, of(CHAT, 0)))


@pytest.mark.parametrize("up", ["1x80", "_x10 0x9 1x60"], ids=["new Prometheus", "new head"])
def test_starts_of_replicas_are_counted_in_the_first_window_of_a_target(up: str, tmp_path: Path) -> None:
    deployment = {**CHAT, "application": "a", "deployment": "d"}
    first, second = (
        series("ray_serve_deployment_replica_starts_total", values, deployment, replica=name, WorkerId=name)
        for name, values in (("r1", "_x24 1x60"), ("r2", "_x40 1x50"))
    )
    status = series("ray_serve_deployment_status", "6x80", deployment)
    target = Series("up", up, TARGET)
    found = [status, target, first, second]
    answers(tmp_path, scaling.replica_starts(EVERYTHING), found, Answer(900, of(deployment, 2)))


def test_error_ratio_is_zero_without_errors_and_absent_without_requests(tmp_path: Path) -> None:
    served = series("ray_serve_num_http_requests_total", "0+15x30 450x50", CHAT, application="a", route="/a/v1")
    query = traffic.error_ratio(EVERYTHING, "2m")
    answers(tmp_path, query, [STATUS, UP, served], Answer(300, of(CHAT, 0)), Answer(LATER, {}))


def test_error_ratio_divides_the_first_error_by_the_requests(tmp_path: Path) -> None:
    served = series("ray_serve_num_http_requests_total", "0+1x80", CHAT, application="a", route="/a/v1")
    first = series("ray_serve_num_http_error_requests_total", "_x59 1x30", CHAT, **FIRST_ERROR)
    answers(tmp_path, traffic.error_ratio(EVERYTHING), [UP, served, first], Answer(LATER, of(CHAT, 0.05)))


# -- joins and units -------------------------------------------------------------------------------------------------


def test_engine_metric_is_summed_by_deployment_through_the_replica(tmp_path: Path) -> None:
    healthy = [
        series("ray_serve_deployment_replica_healthy", "1x80", CHAT, application="a", deployment="d", replica=replica)
        for replica in ("r1", "r2")
    ]
    running = [series("ray_vllm_num_requests_running", "3x80", ReplicaId=replica) for replica in ("r1", "r2")]
    status = series("ray_serve_deployment_status", "6x80", CHAT, application="a", deployment="idle")
    query = queues.running(EVERYTHING, by=labels.DEPLOYMENT)
    expected = of({**CHAT, "application": "a", "deployment": "d"}, 6)
    expected |= of({**CHAT, "application": "a", "deployment": "idle"}, 0)
    answers(tmp_path, query, [*healthy, *running, status], Answer(LATER, expected))


def test_quantile_of_milliseconds_is_in_seconds(tmp_path: Path) -> None:
    buckets = [
        series("ray_serve_http_request_latency_ms_bucket", values, CHAT, application="a", route="/a/v1", le=le)
        for le, values in (("500.0", "0x80"), ("1000.0", "0+20x80"), ("+Inf", "0+20x80"))
    ]
    query = latency.proxy_latency(EVERYTHING, q=0.5)
    answers(tmp_path, query, buckets, Answer(LATER, of({**CHAT, "application": "a"}, 0.75)))


def test_quantile_has_no_data_without_requests(tmp_path: Path) -> None:
    buckets = [series("ray_vllm_time_to_first_token_seconds_bucket", "20x80", le=le) for le in ("0.5", "+Inf")]
    answers(tmp_path, latency.time_to_first_token(EVERYTHING), buckets, Answer(LATER, {}))


@pytest.mark.parametrize(("limit", "share"), [(0.5, 0.5), (0.75, 0.75), (0.6, 0.6)])
def test_share_in_time_is_exact_at_a_bound_and_interpolated_between_two(
    limit: float, share: float, tmp_path: Path
) -> None:
    name = "ray_vllm_time_to_first_token_seconds"
    counts = [("0.5", 10), ("0.75", 15), ("+Inf", 20)]
    buckets = [series(f"{name}_bucket", f"0+{count}x80", le=le) for le, count in counts]
    query = slo.ttft_in_time(EVERYTHING, limit=limit)
    answers(tmp_path, query, [*buckets, series(f"{name}_count", "0+20x80")], Answer(LATER, of(MODEL, share)))


def test_share_in_time_refuses_a_limit_that_the_histogram_does_not_have() -> None:
    with pytest.raises(ValueError, match="its last bucket is 80"):
        slo.tpot_in_time(EVERYTHING, limit=100)
    with pytest.raises(ValueError, match="depend on the configuration"):
        blocks.share_within(100, "ray_vllm_request_prompt_tokens", EVERYTHING, "5m", by=labels.MODEL)


def test_query_refuses_a_label_that_cannot_be_had() -> None:
    with pytest.raises(ValueError, match="has no label route"):
        queues.running(EVERYTHING, by=("route",))


def test_healthy_replicas_are_zero_when_all_replicas_stopped(tmp_path: Path) -> None:
    group = {**CHAT, "application": "a", "deployment": "d"}
    wanted = series("ray_serve_autoscaling_target_replicas", "3x80", group)
    stopped = series("ray_serve_deployment_replica_healthy", "1x4 0x1 stale", group, replica="r1")
    answers(tmp_path, scaling.healthy_replicas(EVERYTHING), [wanted, stopped], Answer(LATER, of(group, 0)))


def test_replicas_of_a_model_are_zero_when_it_is_scaled_to_zero(tmp_path: Path) -> None:
    group = {**CHAT, "application": "a", "deployment": "d"}
    wanted = series("ray_serve_autoscaling_target_replicas", "1x4 0x76", group)
    stopped = series("ray_serve_deployment_replica_healthy", "1x4 0x1 stale", group, replica="r1")
    info = Series("rayhelm:model_info", "1x80", {**group, "model_name": "m"})
    for query in (model_cost.model_replicas(EVERYTHING), model_cost.busy_replicas(EVERYTHING)):
        answers(tmp_path, query, [wanted, stopped, info], Answer(LATER, of(MODEL, 0)))


def test_missing_replicas_are_all_replicas_when_none_is_healthy(tmp_path: Path) -> None:
    group = {**CHAT, "application": "a", "deployment": "d"}
    wanted = series("ray_serve_autoscaling_target_replicas", "3x80", group)
    answers(tmp_path, scaling.missing_replicas(EVERYTHING), [wanted], Answer(LATER, of(group, 3)))


# -- labels of different scrapes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("honors_labels", [True, False])
def test_namespace_is_that_of_the_object_with_and_without_honored_labels(honors_labels: bool, tmp_path: Path) -> None:
    seen = {"namespace": "search"} if honors_labels else {"namespace": "kuberay", "exported_namespace": "search"}
    state = Series("kuberay_service_condition_ready", "1x80", {**seen, "name": "chat", "condition": "false"})
    expected = of({"namespace": "search", "name": "chat"}, 1)
    for scope in (EVERYTHING, Scope.of(namespace="search", service="chat")):
        answers(tmp_path, kubernetes.service_not_ready(scope), [state], Answer(LATER, expected))
    answers(tmp_path, kubernetes.service_not_ready(Scope.of(namespace="kuberay")), [state], Answer(LATER, {}))


@pytest.mark.parametrize("honors_labels", [True, False])
def test_gpu_of_a_service_is_found_by_its_pod(honors_labels: bool, tmp_path: Path) -> None:
    pod = {"namespace": "search", "pod": "p"}
    exported = {"namespace": "gpu-operator", "pod": "x", "exported_namespace": "search", "exported_pod": "p"}
    used = Series("DCGM_FI_DEV_GPU_UTIL", "80x80", {**(pod if honors_labels else exported), "UUID": "GPU-1"})
    other = Series("DCGM_FI_DEV_GPU_UTIL", "10x80", {"namespace": "other", "pod": "q", "UUID": "GPU-2"})
    node = Series("ray_node_mem_total", "1x80", {**CHAT, "pod": "p"})
    query = gpu.utilization(Scope.of(service="chat"), by=(*labels.SERVICE, "gpu_id"))
    answers(tmp_path, query, [used, other, node], Answer(LATER, of({**CHAT, "gpu_id": "GPU-1"}, 0.8)))


def test_gpus_of_all_vendors_have_the_same_labels(tmp_path: Path) -> None:
    found = [
        Series("DCGM_FI_DEV_GPU_UTIL", "80x80", {"Hostname": "n1", "UUID": "GPU-1", "modelName": "H100"}),
        Series("gpu_gfx_activity", "40x80", {"hostname": "n2", "serial_number": "S", "card_model": "MI300X"}),
        Series("xpum_engine_ratio", "0.2x80", {"node": "n3", "uuid": "U", "dev_name": "Max 1550"}),
        Series("xpum_engine_ratio", "0.9x80", {"node": "n3", "uuid": "U", "dev_name": "Max 1550", "sub_dev": "0"}),
    ]
    expected = of({"node": "n1", "gpu_id": "GPU-1", "gpu_model": "H100"}, 0.8)
    expected |= of({"node": "n2", "gpu_id": "S", "gpu_model": "MI300X"}, 0.4)
    expected |= of({"node": "n3", "gpu_id": "U", "gpu_model": "Max 1550"}, 0.2)
    answers(tmp_path, gpu.utilization(EVERYTHING), found, Answer(LATER, expected))


def test_idle_gpus_of_a_service_are_counted(tmp_path: Path) -> None:
    pod = {"namespace": "search", "pod": "p"}
    gpus = [
        Series("DCGM_FI_DEV_GPU_UTIL", "0x80", {**pod, "UUID": "GPU-1"}),
        Series("DCGM_FI_DEV_GPU_UTIL", "0x60 90x1 0x20", {**pod, "UUID": "GPU-2"}),
    ]
    node = Series("ray_node_mem_total", "1x80", {**CHAT, "pod": "p"})
    query = gpu.idle_while_allocated(EVERYTHING, window="5m")
    answers(tmp_path, query, [*gpus, node], Answer(600, of(CHAT, 2)), Answer(1000, of(CHAT, 1)))


# -- costs, gateway --------------------------------------------------------------------------------------------------


def test_cost_is_gpus_times_the_price_of_their_worker_group(tmp_path: Path) -> None:
    groups = [{**CHAT, "rayhelm_dev_worker_group": group} for group in ("h100", "l4")]
    found = [
        Series("ray_resources", "4x80", {**groups[0], "Name": "GPU", "State": "USED"}),
        Series("ray_resources", "4x80", {**groups[0], "Name": "GPU", "State": "AVAILABLE"}),
        Series("ray_resources", "2x80", {**groups[1], "Name": "GPU", "State": "USED"}),
        Series("ray_resources", "96x80", {**groups[0], "Name": "CPU", "State": "USED"}),
        Series("rayhelm:gpu_price:dollars_per_hour", "2.5x80", groups[0]),
        Series("rayhelm:gpu_price:dollars_per_hour", "0.8x80", groups[1]),
    ]
    answers(tmp_path, cost.cost_per_hour(EVERYTHING), found, Answer(LATER, of(CHAT, 21.6)))
    answers(tmp_path, cost.cost(EVERYTHING, "10m", step="1m"), found, Answer(LATER, of(CHAT, 3.6)))


def test_share_of_a_version_is_of_the_requests_of_its_model(tmp_path: Path) -> None:
    group = {"namespace": "gateway", "rayhelm_dev_gateway": "g"}
    found = [
        Series("haproxy_backend_http_requests_total", values, {**group, "pod": pod, "proxy": proxy})
        for pod in ("p", "q")
        for proxy, values in (("a:b:stable", "0+8x80"), ("a:b:canary", "0+2x80"), ("c:stable", "0+5x80"))
    ]
    expected = of({**group, "proxy": "a:b:stable", "model": "a:b"}, 0.8)
    expected |= of({**group, "proxy": "a:b:canary", "model": "a:b"}, 0.2)
    expected |= of({**group, "proxy": "c:stable", "model": "c"}, 1)
    answers(tmp_path, gateway.version_share(EVERYTHING), found, Answer(LATER, expected))


def test_rate_usage_is_requests_per_minute_over_the_limit(tmp_path: Path) -> None:
    group = {"namespace": "gateway", "rayhelm_dev_gateway": "g", "tenant": "search"}
    found = [
        Series("rayhelm_gateway_requests_total", "0+15x80", {**group, "model": "m"}),
        Series("rayhelm_gateway_limit", "120x80", {**group, "limit": "requests_per_minute"}),
    ]
    answers(tmp_path, tenants.rate_usage(EVERYTHING), found, Answer(LATER, of(group, 0.5)))


def counted(tenant: str, prompt: str, generation: str = "") -> list[Series]:
    """Tokens that a replica counts for a tenant."""
    both = (("ray_rayhelm_prompt_tokens_total", prompt), ("ray_rayhelm_generation_tokens_total", generation))
    return [series(name, values, ReplicaId="r1", tenant=tenant) for name, values in both if values]


def test_share_of_a_tenant_counts_a_prompt_token_as_a_quarter(tmp_path: Path) -> None:
    made = series("ray_vllm_generation_tokens_total", "0+30x80", ReplicaId="r1")
    used = [*counted("a", "0+20x80", "0+10x80"), *counted("b", "0+10x80", "0+20x80")]
    expected = {**of({**MODEL, "tenant": "a"}, 15 / 37.5), **of({**MODEL, "tenant": "b"}, 22.5 / 37.5)}
    query = tenants.token_share(EVERYTHING, "5m")
    answers(tmp_path, query, [UP, TOKENS, made, *used], Answer(LATER, expected))


def test_share_of_tenants_of_an_embedding_model_is_that_of_prompts(tmp_path: Path) -> None:
    used = [*counted("a", "0+20x80"), *counted("b", "0+10x80")]
    expected = {**of({**MODEL, "tenant": "a"}, 2 / 3), **of({**MODEL, "tenant": "b"}, 1 / 3)}
    answers(tmp_path, tenants.token_share(EVERYTHING, "5m"), [UP, TOKENS, *used], Answer(LATER, expected))


def test_counted_share_is_zero_for_a_model_that_does_not_count(tmp_path: Path) -> None:
    answers(tmp_path, tenants.counted_share(EVERYTHING), [UP, TOKENS], Answer(LATER, of(MODEL, 0)))


def test_counted_share_is_one_when_every_token_has_a_tenant(tmp_path: Path) -> None:
    used = [*counted("a", "0+20x80"), *counted("b", "0+10x80")]
    answers(tmp_path, tenants.counted_share(EVERYTHING), [UP, TOKENS, *used], Answer(LATER, of(MODEL, 1)))


def test_first_tokens_of_a_tenant_count(tmp_path: Path) -> None:
    first = counted("a", "_x10 7x70")
    group = of({**MODEL, "tenant": "a"}, 7)
    answers(tmp_path, tenants.prompt_tokens(EVERYTHING, "5m"), [UP, TOKENS, *first], Answer(300, group))


def test_rate_usage_is_zero_for_a_tenant_without_requests(tmp_path: Path) -> None:
    group = {"namespace": "gateway", "rayhelm_dev_gateway": "g", "tenant": "search"}
    limit = Series("rayhelm_gateway_limit", "120x80", {**group, "limit": "requests_per_minute"})
    answers(tmp_path, tenants.rate_usage(EVERYTHING), [limit], Answer(LATER, of(group, 0)))


def test_cold_start_of_the_only_replica_is_seen(tmp_path: Path) -> None:
    group = {**CHAT, "application": "a", "deployment": "d"}
    buckets = {"10000": "_x9 0+0x70", "30000": "_x9 1+0x70", "+Inf": "_x9 1+0x70"}
    found = [
        series("ray_serve_replica_startup_latency_ms_bucket", values, group, le=le) for le, values in buckets.items()
    ]
    query = scaling.cold_start_time(EVERYTHING, by=tuple(group), q=0.5)
    answers(tmp_path, query, found, Answer(LATER, of(group, 20)))


def test_model_of_a_scope_is_matched_exactly(tmp_path: Path) -> None:
    group = {"namespace": "gateway", "rayhelm_dev_gateway": "g"}
    found = [
        Series("haproxy_backend_current_sessions", "1x80", {**group, "proxy": proxy})
        for proxy in ("llama-3.1:stable", "llama-311:stable")
    ]
    query = gateway.requests_in_flight(Scope.of(model="llama-3.1"))
    answers(tmp_path, query, found, Answer(LATER, of({**group, "proxy": "llama-3.1:stable"}, 1)))


def test_tokens_of_an_engine_without_output_tokens_are_seen(tmp_path: Path) -> None:
    group = {**CHAT, "application": "a", "deployment": "d"}
    healthy = series("ray_serve_deployment_replica_healthy", "1x80", group, replica="r1")
    answers(tmp_path, conditions.processed_tokens(EVERYTHING), [healthy, TOKENS], Answer(LATER, of(group, 600)))


GATEWAY_POD = {"namespace": "gateway", "rayhelm_dev_gateway": "g", "pod": "p"}


def test_age_of_a_jwks_has_no_data_for_a_gateway_without_tokens(tmp_path: Path) -> None:
    up = Series("haproxy_process_uptime_seconds", "0+15x80", GATEWAY_POD)
    read = Series("rayhelm_gateway_token_keys_read_timestamp_seconds", "600x80", GATEWAY_POD)
    answers(tmp_path, conditions.token_key_age(EVERYTHING), [up], Answer(LATER, {}))
    answers(tmp_path, conditions.token_key_age(EVERYTHING), [up, read], Answer(LATER, of(GATEWAY_POD, 300)))


def test_token_usage_is_used_tokens_of_all_pods_over_their_limits(tmp_path: Path) -> None:
    group = {"namespace": "gateway", "rayhelm_dev_gateway": "g", "tenant": "search"}
    found = [
        *(Series("rayhelm_gateway_tokens_used", "600x80", {**group, "pod": pod}) for pod in ("p", "q")),
        *(
            Series("rayhelm_gateway_limit", "1000x80", {**group, "pod": pod, "limit": "tokens_per_minute"})
            for pod in ("p", "q")
        ),
    ]
    answers(tmp_path, tenants.token_usage(EVERYTHING), found, Answer(LATER, of(group, 0.6)))


def test_limited_share_of_a_tenant_without_forwarded_requests_is_one(tmp_path: Path) -> None:
    group = {"namespace": "gateway", "rayhelm_dev_gateway": "g", "tenant": "search"}
    refused = Series("rayhelm_gateway_rejections_total", "0+5x80", {**group, "reason": "rate_limit_exceeded"})
    answers(tmp_path, conditions.limited_share(EVERYTHING, "10m"), [refused], Answer(LATER, of(group, 1)))


# -- responses of one token ------------------------------------------------------------------------------------------

TPOT, OUTPUT = "ray_vllm_request_time_per_output_token_seconds", "ray_vllm_request_generation_tokens"
SHORT = series(f"{OUTPUT}_bucket", "0+60x80", le="1.0")
"""Of 100 requests of each scrape, 60 have one token, for which vLLM observes 0 s. 20 of the other 40 are slow."""
TIMES = [
    *(series(f"{TPOT}_bucket", values, le=le) for le, values in (("0.01", "0+60x80"), ("0.05", "0+80x80"))),
    *(series(f"{TPOT}_bucket", "0+100x80", le=le) for le in ("0.1", "+Inf")),
    series(f"{TPOT}_count", "0+100x80"),
]


def test_time_per_output_token_leaves_out_responses_of_one_token(tmp_path: Path) -> None:
    query = latency.time_per_output_token(EVERYTHING, q=0.5)
    answers(tmp_path, query, [*TIMES, SHORT], Answer(LATER, of(MODEL, 0.05)))


def test_time_per_output_token_is_there_without_the_counts_of_tokens(tmp_path: Path) -> None:
    query = latency.time_per_output_token(EVERYTHING, q=0.6)
    answers(tmp_path, query, TIMES, Answer(LATER, of(MODEL, 0.01)))


def test_objective_of_output_tokens_leaves_out_responses_of_one_token(tmp_path: Path) -> None:
    boundary = series("rayhelm:slo_boundary", "1x80", slo="tpot", le="0.05")
    requests, in_time = objectives.latency_requests(EVERYTHING, "tpot"), objectives.requests_in_time(EVERYTHING, "tpot")
    answers(tmp_path, requests, [*TIMES, SHORT, UP], Answer(LATER, of(MODEL, 800)))
    answers(tmp_path, in_time, [*TIMES, SHORT, UP, boundary], Answer(LATER, of(MODEL, 400)))
