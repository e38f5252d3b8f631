"""The Prometheus of a cluster in the fleet file, and what follows from it in every chart."""

from typing import Any

import pytest

from rayhelm.deploy.render.files import Rendered, render_plan
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load
from shared.small_fleet import SMALL, the_problem

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
    return render_plan(plan_fleet(load(FLEET % cluster)))


def values(rendered: Rendered) -> dict[str, Any]:
    return {release.chart: release.values for release in rendered.releases}


def test_fleet_without_prometheus_has_no_pod_monitors() -> None:
    found = values(of(""))
    assert found["ray-service"].scraping.kind == "None"
    assert found["gateway"].scraping.kind == "None"
    assert not found["gateway"].autoscaling.target_requests_in_flight
    assert found["platform"].metrics.scraping.kind == "None"


def test_pod_monitors_have_the_labels_of_prometheus() -> None:
    found = values(of(f", prometheus: {{url: '{URL}', scrapeLabels: {{release: stack}}}}"))
    for chart in ("ray-service", "gateway"):
        assert found[chart].scraping.kind == "PodMonitor"
        assert found[chart].scraping.labels == {"release": "stack"}
    assert found["platform"].metrics.scraping.kind == "PodMonitor"


def test_config_map_replaces_pod_monitors_without_operator() -> None:
    found = values(of(f", prometheus: {{url: '{URL}', scraping: ConfigMap}}"))
    assert found["ray-service"].scraping.kind == "None"
    assert found["gateway"].scraping.kind == "None"
    assert found["platform"].metrics.scraping.kind == "ConfigMap"


@pytest.mark.parametrize("kind", ["PodMonitor", "ScrapeConfig", "Annotations"])
def test_all_charts_scrape_in_the_way_of_the_cluster(kind: str) -> None:
    found = values(of(f", prometheus: {{url: '{URL}', scraping: {kind}}}"))
    assert {found[chart].scraping.kind for chart in ("ray-service", "gateway")} == {kind}
    assert found["platform"].metrics.scraping.kind == kind


@pytest.mark.parametrize("kind", ["ConfigMap", "Annotations"])
def test_scrape_labels_are_refused_when_no_object_has_them(kind: str) -> None:
    problem = the_problem(
        f"{SMALL}clusters: {{main: {{prometheus: {{url: '{URL}', scraping: {kind}, scrapeLabels: {{release: s}}}}}}}}\n"
    )
    assert f"`scraping: {kind}` creates none" in problem.message
    assert "scraping: PodMonitor" in str(problem)


def test_unknown_way_of_scraping_is_refused_with_those_that_exist() -> None:
    problem = the_problem(f"{SMALL}clusters: {{main: {{prometheus: {{url: '{URL}', scraping: ServiceMonitor}}}}}}\n")
    assert problem.path == "clusters.main.prometheus.scraping"
    assert all(kind in str(problem) for kind in ("PodMonitor", "ScrapeConfig", "ConfigMap", "Annotations"))


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
