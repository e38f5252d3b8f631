"""`commonLabels`: on every object of every chart, and on no pod."""

import re
from typing import Any

import pytest

from charts.each_chart import CHARTS, Chart
from charts.kit import Object, example, over

OWNED = re.compile(r"(^|\.)(rayhelm\.dev|ray\.io|helm\.sh|kubernetes\.io|k8s\.io)/")
LABELS = {"cost-center": 42, "example.com/team": "search"}


def pod_templates(node: Any) -> list[Object]:
    if isinstance(node, list):
        return [found for each in node for found in pod_templates(each)]
    if not isinstance(node, dict):
        return []
    own = [node["template"]] if "containers" in str(node.get("template")) else []
    return own + [found for each in node.values() for found in pod_templates(each)]


@pytest.mark.parametrize("chart", CHARTS, ids=str)
def test_every_object_and_no_pod_has_the_common_labels(chart: Chart) -> None:
    values = example("everything" if chart.name == "ray-service" else f"{chart.name}/everything")
    plain, labeled = chart.objects(values), chart.objects(over(values, {"commonLabels": LABELS}))
    expected = {"cost-center": "42", "example.com/team": "search"}
    assert labeled
    for before, after in zip(plain, labeled, strict=True):
        added = {} if after["kind"] == "Pod" else expected
        assert after["metadata"].get("labels", {}) == before["metadata"].get("labels", {}) | added, after["kind"]
        assert pod_templates(after) == pod_templates(before)


@pytest.mark.parametrize("chart", CHARTS, ids=str)
def test_common_labels_replace_labels_of_one_kind_of_object(chart: Chart) -> None:
    values = example("everything" if chart.name == "ray-service" else f"{chart.name}/everything")
    plain = chart.objects(values)
    own = {key for item in plain for key in item["metadata"].get("labels", {}) if not OWNED.search(key)}
    assert own or chart.name == "argocd"
    for item in chart.objects(over(values, {"commonLabels": dict.fromkeys(own, "common")})):
        labels = item["metadata"].get("labels", {})
        assert item["kind"] == "Pod" or {labels[key] for key in own} <= {"common"}
