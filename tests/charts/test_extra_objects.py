"""`extraObjects`: rendered as they are written, with the labels and annotations of the release."""

import pytest

from charts.each_chart import CHARTS, Chart, chart_of
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


@pytest.mark.parametrize("name", ["ray-service", "tenant"])
def test_class_in_a_namespace_is_rendered(name: str) -> None:
    group = "secrets-store.csi.x-k8s.io/v1"
    secrets = {"apiVersion": group, "kind": "SecretProviderClass", "metadata": {"name": "vault"}, "spec": {}}
    assert extra_of(chart_of(name), secrets)["kind"] == "SecretProviderClass"


def test_refused_object_of_another_namespace_has_a_place() -> None:
    far = {**WRITTEN, "metadata": {"name": "far", "namespace": "search"}}
    problem = chart_of("gateway").refused("extra-object", {"extraObjects": [far]})
    assert "Write it into `extraObjects` of a release there, or of chart `platform`" in problem.message
    platform = chart_of("platform")
    assert extra_of(platform, far)["metadata"]["namespace"] == "search"


REACHING = {
    "RBAC": ("rbac.authorization.k8s.io/v1", "Role"),
    "RBAC of OpenShift": ("authorization.openshift.io/v1", "RoleBinding"),
    "webhook": ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    "CRD": ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    "priority": ("scheduling.k8s.io/v1", "PriorityClass"),
    "volume": ("v1", "PersistentVolume"),
    "project": ("argoproj.io/v1alpha1", "AppProject"),
    "list": ("v1", "ConfigMapList"),
    "class of the cluster": ("networking.k8s.io/v1", "IngressClass"),
    "class of nodes": ("karpenter.k8s.aws/v1", "EC2NodeClass"),
}


@pytest.mark.parametrize(("version", "kind"), REACHING.values(), ids=list(REACHING))
def test_object_that_reaches_beyond_the_release_is_refused(version: str, kind: str) -> None:
    chart = chart_of("gateway")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"key": "not-shown"}}
    far = {"apiVersion": version, "kind": kind, "metadata": {"name": "far"}}
    problem = chart.refused("extra-object", {"extraObjects": [WRITTEN, far, secret]})
    assert f"{kind} far" in problem.message
    assert "Widget" in str(problem.fix)
    assert "not-shown" not in str(problem)
