"""No alert fires in normal operation: idle, scaled to zero, during an upgrade and a scale-down."""

from pathlib import Path

import pytest

from alerts.kit import Case, rule_files, run_cases

FIRING = 'count(ALERTS{alertstate="firing",alertname!="Watchdog"}) or vector(0)'
TTFT, TPOT = "ray_vllm_time_to_first_token_seconds", "ray_vllm_request_time_per_output_token_seconds"
GATEWAY = {
    'haproxy_backend_http_responses_total{$G,pod="g",proxy="llama:stable",code="2xx"}': "0+60x60 3600x200",
    'haproxy_backend_http_responses_total{$G,pod="g",proxy="llama:stable",code="5xx"}': "0x260",
    'haproxy_backend_http_requests_total{$G,pod="g",proxy="llama:stable"}': "0+60x60 3600x200",
    'haproxy_backend_retry_warnings_total{$G,pod="g",proxy="llama:stable"}': "0x30 2x230",
    'haproxy_backend_redispatch_warnings_total{$G,pod="g",proxy="llama:stable"}': "0x260",
    'kube_deployment_status_replicas_available{namespace="gateway",deployment="gateway"}': "2x260",
    'kube_secret_info{namespace="gateway",secret="gateway-keys-apps"}': "1x260",
}
ENGINE = {
    f'{TTFT}_bucket{{$M,WorkerId="a",le="0.75"}}': "_x5 1+60x55 3301x200",
    f'{TTFT}_bucket{{$M,WorkerId="a",le="+Inf"}}': "_x5 1+60x55 3301x200",
    f'{TTFT}_count{{$M,WorkerId="a"}}': "_x5 1+60x55 3301x200",
    f'{TPOT}_bucket{{$M,WorkerId="a",le="0.05"}}': "_x5 1+60x55 3301x200",
    f'{TPOT}_bucket{{$M,WorkerId="a",le="+Inf"}}': "_x5 1+60x55 3301x200",
    f'{TPOT}_count{{$M,WorkerId="a"}}': "_x5 1+60x55 3301x200",
    'ray_vllm_num_requests_waiting{$M,ReplicaId="a"}': "_x5 2x55 0x1 stale",
    'ray_vllm_kv_cache_usage_perc{$M,ReplicaId="a"}': "_x5 0.8x55 0x1 stale",
    'ray_vllm_prompt_tokens_total{$M,WorkerId="a"}': "_x5 100+6000x55 330100x200",
    'ray_vllm_generation_tokens_total{$M,WorkerId="a"}': "_x5 50+3000x55 165050x200",
    'ray_vllm_request_success_total{$M,WorkerId="a",finished_reason="stop"}': "_x5 1+60x55 3301x200",
}
"""An hour of load, in which counters are absent before the first request, and gauges disappear after the last."""


def serve(healthy: str, target: str, processing: str = "2x60 0x200") -> dict[str, str]:
    """Series of the Serve controller."""
    return {
        'ray_serve_application_status{$S,application="llama"}': "6x260",
        'ray_serve_deployment_replica_healthy{$E,replica="a"}': healthy,
        "ray_serve_autoscaling_target_replicas{$E}": target,
        'ray_serve_replica_processing_queries{$E,replica="a"}': processing,
        'ray_serve_deployment_queued_queries{$E,handle="h"}': "0x260",
        'ray_node_mem_used{$S,pod="chat-head",IsHeadNode="true"}': "3x260",
        'ray_node_mem_total{$S,pod="chat-head",IsHeadNode="true"}': "8x260",
    }


READY = {'kuberay_service_condition_ready{$K,condition="true"}': "1x260"}
IDLE = {**GATEWAY, **ENGINE, **READY, **serve("1x260", "1x260")}
ZERO = {
    **GATEWAY,
    **ENGINE,
    **serve("1x120 stale", "1x120 0x140"),
    'kuberay_service_condition_ready{$K,condition="true"}': "1x121 stale",
    'kuberay_service_condition_ready{$K,condition="false"}': "_x122 1x130",
    'ray_resources{$S,pod="w",Name="GPU",State="AVAILABLE"}': "0x120 1x5 stale",
}
"""The last replica and its worker are removed after an hour without requests; KubeRay then reports no endpoint."""
FROM_ZERO = {
    **GATEWAY,
    **READY,
    **serve("_x60 0x8 1x200", "0x60 1x200", "_x68 1x200"),
    'ray_vllm_prompt_tokens_total{$M,WorkerId="b"}': "_x70 10+90x190",
    'ray_vllm_generation_tokens_total{$M,WorkerId="b"}': "_x70 10+90x190",
}
"""A first request starts a replica, which loads for 8 minutes."""
UPGRADE = {
    **GATEWAY,
    **ENGINE,
    **READY,
    **serve("1x75 stale", "1x75 stale", "2x60 0x15 stale"),
    'ray_serve_deployment_replica_healthy{$E,pod="new-head",replica="n"}': "_x40 0x12 1x200",
    'ray_serve_autoscaling_target_replicas{$E,pod="new-head"}': "_x40 1x212",
    'kuberay_service_condition_upgrade_in_progress{$K,condition="true"}': "_x38 1x37 stale",
    'kube_resourcequota{namespace="search",resourcequota="search",resource="requests.nvidia.com/gpu",type="used"}': (
        "4x38 8x37 4x180"
    ),
    'kube_resourcequota{namespace="search",resourcequota="search",resource="requests.nvidia.com/gpu",type="hard"}': (
        "8x260"
    ),
    'ray_resources{$S,pod="new-w",Name="GPU",State="AVAILABLE"}': "_x40 1x3 0x200",
}
"""KubeRay starts a second Ray cluster, which loads for 12 minutes, and removes the first one."""
SCALE_DOWN = {
    **GATEWAY,
    **ENGINE,
    **READY,
    **serve("1x260", "3x60 1x200"),
    'ray_serve_deployment_replica_healthy{$E,replica="b"}': "1x62 stale",
    'ray_serve_deployment_replica_healthy{$E,replica="c"}': "1x62 stale",
    'ray_resources{$S,pod="w2",Name="GPU",State="AVAILABLE"}': "0x62 1x6 stale",
    'up{job="ray",instance="a",namespace="search",rayhelm_dev_service="chat",pod="chat-head"}': "1x260",
    'up{job="ray",instance="w2",namespace="search",rayhelm_dev_service="chat",pod="w2"}': "1x67 0x2 stale",
    'up{job="gateway",instance="g",namespace="gateway",rayhelm_dev_gateway="gateway"}': "1x260",
}
"""Two of three replicas are removed, and then their workers."""
SCENARIOS = {
    "idle": IDLE,
    "scaled to zero": ZERO,
    "started from zero": FROM_ZERO,
    "upgraded": UPGRADE,
    "scaled down": SCALE_DOWN,
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_alert_fires_in_normal_operation(name: str, tmp_path: Path) -> None:
    times = dict.fromkeys(["10m", "45m", "58m", "70m", "90m", "130m", "170m", "240m"], 0.0)
    run_cases(tmp_path, rule_files(), [Case(name, SCENARIOS[name], {FIRING: times})])
