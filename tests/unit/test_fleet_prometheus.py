"""The Prometheus of a cluster in the fleet file, and what follows from it in every chart."""

from typing import Any

import pytest

from rayhelm.render.files import Rendered, render_loaded_fleet
from unit.fleets import load
from unit.small_fleet import SMALL, the_problem

FLEET = """\
fleet: watched
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}%s}}
pools: {gpu: {gpu: L4-24GB, nodes: 4}}
models: {chat: {source: Qwen/Qwen3-8B, context: 4096}}
services: {chat: {tenant: owner}}
tenants: {owner: {models: [chat]}}
"""
URL = "http://prometheus.metrics:9090"


def of(cluster: str) -> Rendered:
    return render_loaded_fleet(load(FLEET % cluster))


def values(rendered: Rendered) -> dict[str, Any]:
    return {release.chart: release.values for release in rendered.releases}


def test_fleet_without_prometheus_has_no_pod_monitors() -> None:
    found = values(of(""))
    assert not found["ray-service"].pod_monitor.enabled
    assert not found["gateway"].pod_monitor.enabled
    assert not found["gateway"].autoscaling.target_requests_in_flight
    assert not found["platform"].metrics.scrape_configs


def test_pod_monitors_have_the_labels_of_prometheus() -> None:
    found = values(of(f", prometheus: {{url: '{URL}', podMonitorLabels: {{release: stack}}}}"))
    for chart in ("ray-service", "gateway"):
        assert found[chart].pod_monitor.enabled
        assert found[chart].pod_monitor.labels == {"release": "stack"}
    assert not found["platform"].metrics.scrape_configs


def test_scrape_configs_replace_pod_monitors_without_operator() -> None:
    found = values(of(f", prometheus: {{url: '{URL}', discovery: ScrapeConfigs}}"))
    assert not found["ray-service"].pod_monitor.enabled
    assert not found["gateway"].pod_monitor.enabled
    assert found["platform"].metrics.scrape_configs


def test_only_the_namespace_of_prometheus_may_scrape() -> None:
    found = values(of(f", prometheus: {{url: '{URL}', namespace: metrics}}"))
    for chart in ("ray-service", "gateway"):
        assert found[chart].network_policy.prometheus.namespace == "metrics"
    assert found["platform"].metrics.prometheus_url == URL


@pytest.mark.parametrize("replicas", ["", ", replicas: {min: 3, max: 9}"])
def test_gateway_scales_by_requests_in_flight(replicas: str) -> None:
    rendered = of(f", prometheus: {{url: '{URL}'}}, gateway: {{requestsInFlight: 80{replicas}}}")
    scaling = values(rendered)["gateway"].autoscaling
    assert (scaling.kind, scaling.target_requests_in_flight) == ("HPA", 80)
    assert (scaling.min_replicas, scaling.max_replicas) == ((3, 9) if replicas else (2, 6))


def test_requests_in_flight_without_prometheus_is_refused() -> None:
    problem = the_problem(f"{SMALL}clusters: {{main: {{gateway: {{requestsInFlight: 80}}}}}}\n")
    assert problem.path == "clusters.main.gateway.requestsInFlight"
    assert "has no `prometheus`" in problem.message
    assert problem.fix_text.startswith("clusters:\n  main:\n    prometheus: {url: ")


def test_requests_in_flight_with_fixed_replicas_is_refused() -> None:
    problem = the_problem(f"{SMALL}clusters: {{main: {{gateway: {{replicas: 2, requestsInFlight: 80}}}}}}\n")
    assert "`replicas` is a fixed number" in problem.message
    assert str(problem.fix) == "replicas: {min: 2, max: 6}"


@pytest.mark.parametrize("url", ["prometheus:9090", "ftp://prometheus", "'http://a b'", "http://"])
def test_prometheus_url_that_is_not_http_is_refused(url: str) -> None:
    assert "url" in the_problem(f"{SMALL}clusters: {{main: {{prometheus: {{url: {url}}}}}}}\n").path
