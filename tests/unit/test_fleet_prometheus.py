"""The Prometheus of a cluster in the fleet file, and what follows from it in every chart."""

from typing import Any

import pytest

from rayhelm.render.files import Rendered, rendered_of
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
    return rendered_of(load(FLEET % cluster))


def values(rendered: Rendered) -> dict[str, Any]:
    return {release.chart: release.values for release in rendered.releases}


def test_without_one_nothing_is_scraped() -> None:
    found = values(of(""))
    assert not found["ray-service"].pod_monitor.enabled
    assert not found["gateway"].pod_monitor.enabled
    assert not found["gateway"].autoscaling.target_requests_in_flight
    assert not found["platform"].metrics.scrape_configs


def test_it_finds_services_and_the_gateway_by_pod_monitors_with_its_labels() -> None:
    found = values(of(f", prometheus: {{url: '{URL}', podMonitorLabels: {{release: stack}}}}"))
    for chart in ("ray-service", "gateway"):
        assert found[chart].pod_monitor.enabled
        assert found[chart].pod_monitor.labels == {"release": "stack"}
    assert not found["platform"].metrics.scrape_configs


def test_without_the_prometheus_operator_it_gets_scrape_configurations_instead() -> None:
    found = values(of(f", prometheus: {{url: '{URL}', discovery: ScrapeConfigs}}"))
    assert not found["ray-service"].pod_monitor.enabled
    assert not found["gateway"].pod_monitor.enabled
    assert found["platform"].metrics.scrape_configs


def test_only_its_namespace_may_scrape_and_its_address_is_the_platforms() -> None:
    found = values(of(f", prometheus: {{url: '{URL}', namespace: metrics}}"))
    for chart in ("ray-service", "gateway"):
        assert found[chart].network_policy.prometheus.namespace == "metrics"
    assert found["platform"].metrics.prometheus_url == URL


@pytest.mark.parametrize("replicas", ["", ", replicas: {min: 3, max: 9}"])
def test_the_gateway_aims_at_requests_in_flight(replicas: str) -> None:
    rendered = of(f", prometheus: {{url: '{URL}'}}, gateway: {{requestsInFlight: 80{replicas}}}")
    scaling = values(rendered)["gateway"].autoscaling
    assert (scaling.kind, scaling.target_requests_in_flight) == ("HPA", 80)
    assert (scaling.min_replicas, scaling.max_replicas) == ((3, 9) if replicas else (2, 6))


def test_requests_in_flight_need_somebody_who_counts_them() -> None:
    problem = the_problem(f"{SMALL}clusters: {{main: {{gateway: {{requestsInFlight: 80}}}}}}\n")
    assert problem.path == "clusters.main.gateway.requestsInFlight"
    assert "has no `prometheus`" in problem.message
    assert problem.fix_text.startswith("clusters:\n  main:\n    prometheus: {url: ")


def test_a_fixed_number_of_pods_aims_at_nothing() -> None:
    problem = the_problem(f"{SMALL}clusters: {{main: {{gateway: {{replicas: 2, requestsInFlight: 80}}}}}}\n")
    assert "`replicas` is a fixed number" in problem.message
    assert str(problem.fix) == "replicas: {min: 2, max: 6}"


@pytest.mark.parametrize("url", ["prometheus:9090", "ftp://prometheus", "'http://a b'", "http://"])
def test_an_address_is_one_of_the_web(url: str) -> None:
    assert "url" in the_problem(f"{SMALL}clusters: {{main: {{prometheus: {{url: {url}}}}}}}\n").path
