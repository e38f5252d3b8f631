"""The catalog of metrics against a scrape of Ray with vLLM, and against the gateway itself."""

import re
from pathlib import Path

import pytest

from gateway.kit import minimal_values, start_gateway, start_upstreams, wait_for
from rayhelm.facts.metrics import Metric, load_exporters, load_metrics
from rayhelm.facts.operators import load_nvidia
from rayhelm.facts.scaling import load_scaling_rules

SCRAPE = Path(__file__).parents[1] / "scaling/scrapes/ray-service.prom"
SUFFIXES = {"histogram": "_count", "gauge": "", "counter": ""}
Series = dict[str, set[str]]
"""Names of labels by name of series."""


def types(scrape: str) -> dict[str, str]:
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", scrape, re.MULTILINE))


def series(scrape: str) -> Series:
    found: Series = {}
    for name, labels in re.findall(r"^([A-Za-z_]\w*)(?:\{(.*)\})? \S+$", scrape, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return found


def of(scraped: str) -> dict[str, Metric]:
    return {
        name: metric
        for exporter in load_exporters().values()
        if exporter.scraped == scraped
        for name, metric in exporter.metrics.items()
    }


def unlike(scraped: str, scrape: str) -> list[str]:
    """Where the catalog and a scrape say something else."""
    there, labels, found = types(scrape), series(scrape), []
    for exporter in load_exporters().values():
        if exporter.scraped != scraped:
            continue
        for name, metric in exporter.metrics.items():
            if metric.seen != (name in there):
                found.append(f"{name}: {'not ' * metric.seen}there")
            elif metric.seen and there[name] != metric.type:
                found.append(f"{name} is a {there[name]}")
            elif metric.seen and (lacks := exporter.labels_of(name) - labels[name + SUFFIXES[metric.type]]):
                found.append(f"{name} has no label {lacks}")
    return found


def test_names_types_and_labels_are_those_of_a_live_service() -> None:
    assert unlike("service", SCRAPE.read_text()) == []


def test_names_types_and_labels_are_those_of_the_gateway() -> None:
    with start_upstreams("here") as (upstream,), start_gateway(minimal_values(upstream)) as gateway:
        assert gateway.chat().status == 200
        assert gateway.chat(model="unknown").status == 404

        def scrape() -> str:
            pages = [gateway.request_metrics_port(path)[1] for path in ("/metrics", "/metrics/tenants")]
            return "\n".join(pages)

        wait_for(lambda: "rayhelm_gateway_rejections_total" in scrape(), "the refusal is counted")
        wait_for(lambda: "rayhelm_gateway_requests_total" in scrape(), "the request is counted")
        assert unlike("gateway", scrape()) == []


def test_matchers_pick_the_backends_of_models_alone() -> None:
    with start_upstreams("here") as (upstream,), start_gateway(minimal_values(upstream)) as gateway:
        proxies = set(
            re.findall(
                r'^haproxy_backend_\w+\{proxy="([^"]+)"', gateway.request_metrics_port("/metrics")[1], re.MULTILINE
            )
        )
    matcher = load_metrics()["haproxy_backend_current_sessions"].where
    pattern = re.fullmatch(r'proxy=~"(.+)"', matcher)
    assert pattern
    assert {proxy for proxy in proxies if re.fullmatch(pattern[1], proxy)} == {"llama:stable"} < proxies


def test_dcgm_exporter_is_configured_for_every_metric() -> None:
    """The chart platform configures the fields of dcgm-exporter."""
    asked = load_nvidia().counters | load_nvidia().profiling
    assert {name: metric.type for name, metric in load_exporters()["dcgm"].metrics.items()} == {
        name: asked[name].type for name in load_exporters()["dcgm"].metrics
    }


def test_metric_name_is_in_one_exporter() -> None:
    assert len(load_metrics()) == sum(len(exporter.metrics) for exporter in load_exporters().values()) > 60


@pytest.mark.parametrize("name", load_metrics())
def test_name_has_the_form_of_its_type(name: str) -> None:
    metric = load_metrics()[name]
    if metric.type == "counter" and not name.startswith("DCGM_"):
        assert name.endswith("_total")
    if metric.type == "histogram":
        assert not name.endswith(("_bucket", "_sum", "_count"))
    assert metric.meaning.endswith(".")


def test_absent_metric_is_in_no_exporter_and_names_one_that_is() -> None:
    for exporter in load_exporters().values():
        assert not set(exporter.absent) & set(load_metrics())
        for replacement in exporter.absent.values():
            assert replacement.use
            assert set(replacement.use) <= set(load_metrics())


def test_stays_metric_is_always_there_and_of_its_scope() -> None:
    for scraped, scope in load_scaling_rules().scopes.items():
        assert of(scraped)[scope.stays].availability == "always"
