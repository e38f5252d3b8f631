"""`extraObjects`: rendered as they are written, with the labels and annotations of the release."""

import pytest

from charts.each_chart import CHARTS, Chart
from charts.kit import Object, over

WRITTEN: Object = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "extra", "labels": {"example.com/level": "3", "team": "own"}},
    "spec": {"text": "{{ .Values.global }}", "switch": "on", "size": 1234567, "share": 0.5, "items": [{"a": None}]},
}


def extra_of(chart: Chart, written: Object) -> Object:
    common = {
        "commonLabels": {"team": "search"},
        "commonAnnotations": {"example.com/runbook": "https://runbooks.example"},
    }
    values = over(chart.smallest(), common | {"extraObjects": [written]})
    (found,) = [item for item in chart.objects(values) if item["metadata"]["name"] == written["metadata"]["name"]]
    return found


@pytest.mark.parametrize("chart", CHARTS, ids=str)
def test_extra_object_is_rendered_as_written_with_common_labels(chart: Chart) -> None:
    found = extra_of(chart, WRITTEN)
    assert {key: found[key] for key in ("apiVersion", "kind", "spec")} == {
        key: WRITTEN[key] for key in ("apiVersion", "kind", "spec")
    }
    labels = found["metadata"]["labels"]
    assert (labels["team"], labels["example.com/level"]) == ("search", "3")
    assert labels["app.kubernetes.io/name"] == chart.name
    assert found["metadata"]["annotations"] == {"example.com/runbook": "https://runbooks.example"}


REACHING = {
    "RBAC": ("rbac.authorization.k8s.io/v1", "Role"),
    "RBAC of OpenShift": ("authorization.openshift.io/v1", "RoleBinding"),
    "webhook": ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    "CRD": ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    "priority": ("scheduling.k8s.io/v1", "PriorityClass"),
    "volume": ("v1", "PersistentVolume"),
    "project": ("argoproj.io/v1alpha1", "AppProject"),
    "list": ("v1", "ConfigMapList"),
}


@pytest.mark.parametrize(("version", "kind"), REACHING.values(), ids=list(REACHING))
def test_object_that_reaches_beyond_the_release_is_refused(version: str, kind: str) -> None:
    chart = next(each for each in CHARTS if each.name == "gateway")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"key": "not-shown"}}
    far = {"apiVersion": version, "kind": kind, "metadata": {"name": "far"}}
    problem = chart.refused("extra-object", {"extraObjects": [WRITTEN, far, secret]})
    assert f"{kind} far" in problem.message
    assert "Widget" in str(problem.fix)
    assert "not-shown" not in str(problem)
