"""`commonAnnotations`: on every object of every chart, and on no pod."""

import re

import pytest

from charts.each_chart import CHARTS, Chart
from charts.kit import example, over
from charts.test_common_labels import pod_templates

OWNED = re.compile(r"(^|\.)(rayhelm\.dev|ray\.io|helm\.sh|kubernetes\.io|k8s\.io|argocd\.argoproj\.io)/")
ANNOTATIONS = {"example.com/runbook": "https://runbooks.example/models", "example.com/cost-center": 1234567}


@pytest.mark.parametrize("chart", CHARTS, ids=str)
def test_every_object_and_no_pod_has_the_common_annotations(chart: Chart) -> None:
    values = example("everything" if chart.name == "ray-service" else f"{chart.name}/everything")
    plain, annotated = chart.objects(values), chart.objects(over(values, {"commonAnnotations": ANNOTATIONS}))
    expected = ANNOTATIONS | {"example.com/cost-center": "1234567"}
    assert annotated
    for before, after in zip(plain, annotated, strict=True):
        added = {} if after["kind"] == "Pod" else expected
        own = before["metadata"].get("annotations") or {}
        assert (after["metadata"].get("annotations") or {}) == own | added, after["kind"]
        assert pod_templates(after) == pod_templates(before)


@pytest.mark.parametrize("chart", CHARTS, ids=str)
def test_common_annotations_replace_those_of_one_kind_of_object(chart: Chart) -> None:
    values = example("everything" if chart.name == "ray-service" else f"{chart.name}/everything")
    objects = [item for item in chart.objects(values) if item["kind"] != "Pod"]
    own = {key for item in objects for key in item["metadata"].get("annotations") or {} if not OWNED.search(key)}
    assert own or chart.name == "argocd"
    for item in chart.objects(over(values, {"commonAnnotations": dict.fromkeys(own, "common")})):
        annotations = item["metadata"].get("annotations") or {}
        assert item["kind"] == "Pod" or {annotations[key] for key in own} <= {"common"}
