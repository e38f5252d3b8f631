"""The ways of scraping that the charts render: each reads the same ports with the same labels, and two are refused."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from charts import kit
from charts.kit import only, over
from charts.oracles import validator_of
from rayhelm.check.admission.manifests import read_manifests
from rayhelm.check.lint import scraping
from rayhelm.errors import FleetError, MissingError, Problem
from testbed.tools.crds import crd_files

Object = dict[str, Any]

LABELS = {"release": "stack"}
CHARTS = {"gateway": "gateway/minimal", "ray-service": "minimal"}
KINDS = ("PodMonitor", "ScrapeConfig", "ConfigMap", "Annotations")
each_kind = pytest.mark.parametrize("kind", KINDS)
each_chart = pytest.mark.parametrize("chart", CHARTS)


def release(chart: str, kind: str, *overlays: Object) -> list[Object]:
    """Objects of a chart with one way of scraping; `ConfigMap` is of the chart platform alone."""
    own = {"scraping": {"kind": "None" if kind == "ConfigMap" else kind, "labels": LABELS}, **TENANT.get(chart, {})}
    values: Object = own
    for overlay in overlays:
        values = over(values, overlay)
    return kit.rendered(values, chart=chart, base=CHARTS[chart], release=NAMES[chart], namespace="models")


NAMES = {"gateway": "gateway", "ray-service": "chat"}
TENANT: dict[str, Object] = {"ray-service": {"tenant": "research"}}


def platform(kind: str, **settings: Any) -> list[Object]:
    metrics = {
        "services": {"chat": {"namespace": "models"}},
        "gateways": {"gateway": {"namespace": "models"}},
        "scraping": {"kind": kind, "labels": LABELS if kind != "Annotations" else {}, **settings},
    }
    values = {"metrics": metrics, "nvidia": {"enabled": True}}
    return kit.rendered(
        values, chart="platform", base="platform/minimal", release="platform", namespace="rayhelm-system"
    )


def fleet(kind: str) -> list[Object]:
    return [*release("gateway", kind), *release("ray-service", kind), *platform(kind)]


def check(folder: Path, *objects: Object) -> list[Problem]:
    (folder / "objects.yaml").write_text(yaml.safe_dump_all(objects))
    return scraping.check_scraping(read_manifests(folder))


def scraped(folder: Path, *objects: Object) -> set[tuple[str, str, str, str]]:
    """Owner, part, port and path of all that is scraped."""
    (folder / "objects.yaml").write_text(yaml.safe_dump_all(objects))
    manifests = read_manifests(folder)
    pods = [pod for each in manifests for pod in scraping._find_pods(each)]
    found = [scrape for each in manifests for scrape in scraping._find_scrapes(each, pods)]
    return {(each.pod.owner, each.pod.role, each.port, each.path) for each in found}


EVERYTHING = {
    ("gateway gateway", "", "metrics", "/metrics"),
    ("gateway gateway", "", "metrics", "/metrics/tenants"),
    *(("service chat", "head", port, "/metrics") for port in ("metrics", "as-metrics", "dash-metrics")),
    ("service chat", "gpu", "metrics", "/metrics"),
}


@each_kind
def test_each_way_of_scraping_passes_lint(tmp_path: Path, kind: str) -> None:
    assert check(tmp_path, *fleet(kind)) == []


@each_kind
def test_each_way_of_scraping_reads_the_same_ports(tmp_path: Path, kind: str) -> None:
    by_one_path = {each for each in EVERYTHING if each[2:] == ("metrics", "/metrics")}
    assert scraped(tmp_path, *fleet(kind)) == (by_one_path if kind == "Annotations" else EVERYTHING)


def test_nothing_is_scraped_by_default(tmp_path: Path) -> None:
    assert scraped(tmp_path, *fleet("None")) == set()


@pytest.mark.parametrize(("one", "other"), [(one, other) for one in KINDS for other in KINDS if one < other])
def test_two_ways_of_scraping_are_found(tmp_path: Path, one: str, other: str) -> None:
    first, second = sorted((one, other), key=lambda kind: kind != "Annotations")
    problems = check(tmp_path, *fleet(first), *(item for item in fleet(second) if is_scrape(item)))
    assert {problem.rule for problem in problems} == {"scraped-twice"}
    assert {"gateway gateway", "service chat"} <= {
        owner for problem in problems for owner in ("gateway gateway", "service chat") if owner in problem.message
    }
    assert all("every request counts twice" in problem.message for problem in problems)
    assert all(problem.line and "scraping" in problem.fix_text for problem in problems)


def is_scrape(item: Object) -> bool:
    return item["kind"] in ("PodMonitor", "ScrapeConfig") or "scrape_configs" in str(item.get("data"))


@each_chart
def test_monitor_without_target_labels_is_found_with_a_fix(tmp_path: Path, chart: str) -> None:
    objects = release(chart, "PodMonitor")
    monitor = only(objects, "PodMonitor")
    labels = monitor["spec"].pop("podTargetLabels")
    (problem,) = check(tmp_path, *objects)
    assert problem.rule == "scrape-label"
    fix = yaml.safe_load(problem.fix_text)
    assert {*fix["spec"]["podTargetLabels"]} == {*labels}
    monitor["spec"] |= fix["spec"]
    assert check(tmp_path, *objects) == []


@each_chart
def test_scrape_config_without_labelmap_is_found_with_a_fix(tmp_path: Path, chart: str) -> None:
    objects = release(chart, "ScrapeConfig")
    configs = [item for item in objects if item["kind"] == "ScrapeConfig"]
    for config in configs:
        rules = config["spec"]["relabelings"]
        config["spec"]["relabelings"] = [rule for rule in rules if rule.get("action") != "labelmap"]
    problems = check(tmp_path, *objects)
    assert {problem.rule for problem in problems} == {"scrape-label"}
    for config in configs:
        for problem in problems:
            if config["metadata"]["name"] in problem.message.partition(":")[0].split():
                config["spec"] |= yaml.safe_load(problem.fix_text)["spec"]
    assert check(tmp_path, *objects) == []


@each_chart
def test_objects_have_the_labels_by_which_prometheus_selects_them(chart: str) -> None:
    for kind in ("PodMonitor", "ScrapeConfig"):
        found = [item for item in release(chart, kind) + platform(kind) if item["kind"] == kind]
        assert len(found) >= 3
        assert all(LABELS.items() <= item["metadata"]["labels"].items() for item in found)


@pytest.mark.parametrize(
    ("kind", "file"),
    [
        ("PodMonitor", "monitoring.coreos.com_podmonitors.yaml"),
        ("ScrapeConfig", "monitoring.coreos.com_scrapeconfigs.yaml"),
    ],
)
def test_objects_match_the_crds(kind: str, file: str) -> None:
    try:
        crds = {path.name: path for path in crd_files("prometheus-operator")}
    except MissingError as error:
        pytest.skip(f"{error.what}: `make tools` fetches them")
    validator = validator_of(crds[file], "v1" if kind == "PodMonitor" else "v1alpha1")
    for item in fleet(kind):
        if item["kind"] == kind:
            assert [error.message for error in validator.iter_errors(item)] == []


@pytest.mark.parametrize("kind", ["PodMonitor", "ScrapeConfig"])
def test_operators_are_scraped_in_their_namespaces_unless_turned_off(kind: str) -> None:
    def scraped_operators(**settings: Any) -> set[str]:
        found = [item for item in platform(kind, **settings) if item["kind"] == kind]
        return {item["metadata"]["name"].removeprefix("platform-") for item in found}

    assert scraped_operators() == {"kuberay-operator", "dcgm-exporter"}
    assert scraped_operators(kuberayNamespace="") == {"dcgm-exporter"}
    assert scraped_operators(dcgmExporter=False) == {"kuberay-operator"}


@pytest.mark.parametrize("kind", ["PodMonitor", "ScrapeConfig"])
@each_chart
def test_rules_of_the_values_run_after_those_of_the_chart(chart: str, kind: str) -> None:
    rules = {
        "relabelings": [{"targetLabel": "region", "replacement": "eu"}],
        "metricRelabelings": [{"action": "drop", "sourceLabels": ["__name__"], "regex": "ray_node_.*"}],
    }

    def endpoints(*overlays: Object) -> list[Object]:
        found = [item["spec"] for item in release(chart, kind, *overlays) if item["kind"] == kind]
        return [each for spec in found for each in spec.get("podMetricsEndpoints", [spec])]

    plain, changed = endpoints(), endpoints({"scraping": rules})
    assert len(plain) > 1 or chart == "ray-service"
    assert changed == [
        {**each, **rules, "relabelings": [*each.get("relabelings", []), *rules["relabelings"]]} for each in plain
    ]


@pytest.mark.parametrize("rule", [{"targetLabel": "__address__"}, {"action": "labelmap"}, {"action": "labeldrop"}])
@each_chart
def test_rule_that_moves_the_target_or_drops_labels_is_refused(chart: str, rule: Object) -> None:
    with pytest.raises(FleetError, match="relabelings"):
        release(chart, "PodMonitor", {"scraping": {"relabelings": [rule]}})
