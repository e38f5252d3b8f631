"""Traces: environment of the pods, arguments of the engine, egress."""

import pytest

from charts.kit import cluster, env, llm_config, over
from rayhelm.run.local.tracing import SERVICE, build_trace_environment

ENDPOINT = "http://otel-collector.observability:4317"
TRACED = {
    "image": {"includesRayhelm": True},
    "tracing": {"enabled": True, "endpoint": ENDPOINT, "samplingRatio": 0.05},
    "networkPolicy": {"tracing": {"peer": {"namespace": "observability", "podLabels": {"app": "otel"}}}},
}
OVER_HTTP = over(TRACED, {"tracing": {"protocol": "http/protobuf"}})


def environments(overlay=None):
    """Environment of head and worker."""
    found = cluster(overlay)
    pods = [found["headGroupSpec"], *found["workerGroupSpecs"]]
    return [env(pod["template"]["spec"]["containers"][0]) for pod in pods]


def test_pods_have_no_variable_of_traces_by_default():
    for variables in environments({"image": {"includesRayhelm": True}}):
        assert not [name for name in variables if "TRACING" in name or name.startswith("OTEL_")]
    assert "otlp_traces_endpoint" not in llm_config()["engine_kwargs"]


def test_serve_and_vllm_send_traces_to_the_endpoint():
    for variables in environments(TRACED):
        assert variables["RAY_SERVE_TRACING_EXPORTER_IMPORT_PATH"] == "rayhelm.runtime.tracing:span_processors"
        assert variables["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] == ENDPOINT
        assert variables["RAYHELM_TRACING_RATIO"] == "0.05"
        assert variables["OTEL_RESOURCE_ATTRIBUTES"] == "service.namespace=models"
    assert llm_config(TRACED)["engine_kwargs"]["otlp_traces_endpoint"] == ENDPOINT


def test_replicas_of_serve_do_not_sample_again():
    for variables in environments(TRACED):
        assert variables["RAY_SERVE_TRACING_SAMPLING_RATIO"] == "0"


def test_middleware_of_traces_includes_that_of_interrupted_streams():
    for variables in environments(TRACED):
        assert variables["RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"] == "rayhelm.runtime.tracing:middlewares"


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://otel:4318", "http://otel:4318/v1/traces"),
        ("http://otel:4318/", "http://otel:4318/v1/traces"),
        ("https://otel.example:443/otlp/v1/traces", "https://otel.example:443/otlp/v1/traces"),
    ],
)
def test_traces_over_http_have_a_path(endpoint, url):
    overlay = over(OVER_HTTP, {"tracing": {"endpoint": endpoint}})
    assert llm_config(overlay)["engine_kwargs"]["otlp_traces_endpoint"] == url
    for variables in environments(overlay):
        assert variables["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] == url


def test_local_endpoint_sets_the_variables_of_the_chart():
    variables = environments(over(OVER_HTTP, {"tracing": {"samplingRatio": 1}}))[0]
    local = build_trace_environment(f"{ENDPOINT}/v1/traces")
    assert local.pop("OTEL_SERVICE_NAME") == SERVICE
    assert {name: variables.get(name) for name in local} == local


def test_edit_of_traces_changes_the_pods():
    """So KubeRay starts a new cluster."""
    assert cluster(TRACED) != cluster(over(TRACED, {"tracing": {"samplingRatio": 0.1}}))
