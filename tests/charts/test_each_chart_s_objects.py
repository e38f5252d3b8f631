"""Objects of each chart against the schemas of Kubernetes, and with both Helms."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from charts.each_chart import CHARTS, Chart
from charts.kit import HELMS, Object, rendered, values_file
from charts.oracles import built_in
from rayhelm.deploy.charts.helm import lint
from rayhelm.facts.versions import versions

OF_OPERATORS = {
    *("RayService", "PodMonitor", "ScrapeConfig", "HTTPRoute", "ScaledObject", "ExternalSecret", "LocalQueue"),
    *("ClusterPolicy", "DeviceConfig", "GpuDevicePlugin", "GrafanaDashboard", "PrometheusRule"),
    *("AppProject", "Application", "ApplicationSet"),
}
"""Kinds that Kubernetes does not have. The tests of each chart check them."""
each_example = pytest.mark.parametrize(
    ("chart", "example"), [(chart, example) for chart in CHARTS for example in chart.examples], ids=str
)


def kubernetes_versions(chart: Chart) -> list[str]:
    """Versions that a fleet file may name, and the oldest that the chart names."""
    about = yaml.safe_load((chart.folder / "Chart.yaml").read_text())
    oldest = about["kubeVersion"].removeprefix(">=").removesuffix(".0-0")
    return list(dict.fromkeys([oldest, *versions().kubernetes.accepted]))


def objects(chart: Chart, example: str, helm: str = "4") -> list[Object]:
    release = "" if chart.name == "ray-service" else chart.release
    return rendered(chart=chart.name, base=example, release=release, namespace=chart.namespace, helm=helm)


def by_name(items: list[Object]) -> dict[tuple[str, str, str], Object]:
    about = [(item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]) for item in items]
    return dict(zip(about, items, strict=True))


@each_example
def test_objects_match_the_kubernetes_schemas(chart: Chart, example: str) -> None:
    found = [item for item in objects(chart, example) if item["kind"] not in OF_OPERATORS]
    assert found or chart.name == "argocd"
    for kubernetes in kubernetes_versions(chart):
        for item in found:
            built_in(item, kubernetes)


@each_example
def test_objects_are_unique(chart: Chart, example: str) -> None:
    found = objects(chart, example)
    assert len(by_name(found)) == len(found)


@each_example
def test_both_helms_render_the_same_objects(chart: Chart, example: str) -> None:
    three, four = (by_name(objects(chart, example, helm)) for helm in HELMS)
    assert three == four


@each_example
def test_pods_get_no_variables_of_services(chart: Chart, example: str) -> None:
    for spec in _pod_specs(objects(chart, example)):
        assert spec["enableServiceLinks"] is False


@each_example
def test_objects_have_no_null(chart: Chart, example: str) -> None:
    """A server-side apply removes a field that is null, and reviewers cannot tell it from a mistake."""
    assert list(_find_nulls(objects(chart, example), "")) == []


def _find_nulls(value: Any, path: str) -> Iterator[str]:
    if value is None:
        yield path
    for key, child in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _find_nulls(child, f"{path}.{key}")


def _pod_specs(value: Any) -> Iterator[Object]:
    """Each spec of a pod below a value: of Deployments, Jobs, RayServices."""
    if isinstance(value, dict) and isinstance(value.get("containers"), list):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _pod_specs(child)


@each_example
def test_helm_lint_passes(chart: Chart, example: str) -> None:
    lint(chart.name, [values_file(example)])


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize("chart", CHARTS, ids=str)
def test_helm_lint_passes_for_each_kubernetes(chart: Chart, helm: str) -> None:
    (fullest,) = [name for name in chart.examples if name.split("/")[-1] == "everything"]
    for kubernetes in kubernetes_versions(chart):
        for values in ([values_file(fullest)], {}):
            lint(chart.name, values, kube_version=kubernetes, helm=HELMS[helm])
