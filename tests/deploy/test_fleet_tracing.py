"""Traces of a cluster in the fleet file, and what follows from them in every chart."""

from typing import Any

import pytest

from rayhelm.deploy.render.files import Rendered, render_plan
from rayhelm.errors import FleetError
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load
from shared.small_fleet import SMALL, the_problem

FLEET = """\
fleet: traced
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}%s}}
pools: {gpu: {gpu: L4-24GB, nodes: 4}}
models: {chat: {source: Qwen/Qwen3-8B, context: 4096}}
services: {chat: {tenant: owner}}
tenants: {owner: {models: [chat]}}
"""
IMAGE = ", image: {repository: registry.example/ray, tag: '1', includesRayhelm: true}"
URL = "http://otel-collector.observability:4317"


def of(cluster: str) -> Rendered:
    return render_plan(plan_fleet(load(FLEET % cluster)))


def values(cluster: str) -> dict[str, Any]:
    return {release.chart: release.values for release in of(cluster).releases}


def test_fleet_without_tracing_sends_none() -> None:
    found = values("")
    assert not found["ray-service"].tracing.enabled
    assert not found["gateway"].tracing.enabled


def test_gateway_and_services_of_a_cluster_send_traces() -> None:
    found = values(f"{IMAGE}, tracing: {{endpoint: '{URL}', samplingRatio: 0.2, clientTraces: Continue}}")
    service, gateway = found["ray-service"], found["gateway"]
    assert (service.tracing.enabled, service.tracing.endpoint, service.tracing.sampling_ratio) == (True, URL, 0.2)
    tracing = gateway.tracing
    assert (tracing.enabled, tracing.sampling_ratio, tracing.client_traces) == (True, 0.2, "Continue")


def test_egress_is_that_of_the_collector_only() -> None:
    found = values(f"{IMAGE}, tracing: {{endpoint: '{URL}', namespace: traces, podLabels: {{app: otel}}}}")
    egress = found["ray-service"].network_policy.tracing
    assert (egress.peer.namespace, egress.peer.pod_labels, egress.cidrs, egress.port) == (
        "traces",
        {"app": "otel"},
        [],
        4317,
    )


def test_collector_outside_the_cluster_has_cidrs() -> None:
    url = "https://traces.example.com:443/v1/traces"
    found = values(f"{IMAGE}, tracing: {{endpoint: '{url}', protocol: http/protobuf, cidrs: [10.9.0.0/24]}}")
    egress = found["ray-service"].network_policy.tracing
    assert (egress.peer.namespace, egress.cidrs, egress.port) == (None, ["10.9.0.0/24"], 443)


def test_tracing_is_refused_when_the_image_lacks_rayhelm() -> None:
    with pytest.raises(FleetError) as caught:
        of(f", tracing: {{endpoint: '{URL}'}}")
    (problem,) = caught.value.problems
    assert "the image of cluster `main` lacks" in problem.message
    assert "includesRayhelm: true" in problem.fix_text


@pytest.mark.parametrize(
    ("tracing", "message"),
    [
        ("{endpoint: 'otel:4317'}", "is not the URL of an OTLP receiver with its port"),
        ("{endpoint: 'http://otel'}", "is not the URL of an OTLP receiver with its port"),
        ("{endpoint: 'http://otel:70000'}", "is not the URL of an OTLP receiver with its port"),
        ("{endpoint: 'http://user:secret@otel:4317'}", "is not the URL of an OTLP receiver with its port"),
        ("{endpoint: 'grpc://otel:4317'}", "is not the URL of an OTLP receiver with its port"),
        (f"{{endpoint: '{URL}', samplingRatio: 1.5}}", "1"),
        (f"{{endpoint: '{URL}', samplingRatio: -0.1}}", "0"),
        (f"{{endpoint: '{URL}', samplingRatio: 5%}}", "number"),
        (f"{{endpoint: '{URL}', protocol: zipkin}}", "grpc"),
        (f"{{endpoint: '{URL}', cidrs: [10.0.0.0/8], podLabels: {{a: b}}}}", "keep one"),
        ("{}", "endpoint"),
    ],
)
def test_invalid_tracing_is_refused(tracing: str, message: str) -> None:
    problem = the_problem(f"{SMALL}clusters: {{main: {{tracing: {tracing}}}}}\n")
    assert message in problem.message
    assert "Traceback" not in str(problem)


@pytest.mark.parametrize("url", ["127.0.0.1:4318", "http://127.0.0.1", "http://127.0.0.1:99999", "http://a b:4318"])
def test_up_refuses_a_url_without_port(url: str) -> None:
    from rayhelm.errors import UsageError
    from rayhelm.run.local.tracing import check_url

    with pytest.raises(UsageError, match="is not the URL of an OTLP receiver over HTTP"):
        check_url(url)


@pytest.mark.parametrize("url", ["http://127.0.0.1:4318", "http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"])
def test_up_completes_the_path_of_the_receiver(url: str) -> None:
    from rayhelm.run.local.tracing import check_url

    assert check_url(url) == "http://127.0.0.1:4318/v1/traces"
