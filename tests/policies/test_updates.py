"""Updates outside the spec of an object, which a policy has to judge like a new object."""

import copy
from typing import Any

import pytest

from policies.kit.cases import asked, case, namespace

Object = dict[str, Any]

TENANT = namespace(
    "search", labels={"rayhelm.dev/tenant": "search"}, annotations={"rayhelm.dev/dashboard-folder": "search"}
)


def broken_by_update(before: Object, update: Object) -> set[str]:
    """Rules that an update breaks. Each key of `update` is a path of two fields."""
    after = copy.deepcopy(before)
    for path, values in update.items():
        parent, _, field = path.rpartition(".")
        (after[parent] if parent else after).setdefault(field, {}).update(values)
    return {violation.rule for violation in asked(after, TENANT, before)}


@pytest.mark.parametrize(
    "update",
    [
        {"data": {"fleet.json.url": "http://10.0.0.1/"}},
        {"binaryData": {"fleet.json.url": "aHR0cDovLzEwLjAuMC4xLw=="}},
        {"metadata.annotations": {"k8s-sidecar-target-directory": "/tmp/dashboards/others"}},
    ],
    ids=str,
)
def test_update_of_a_dashboard_is_judged_by_its_keys_and_directory(update: Object) -> None:
    before = case("tenant-objects", "dashboard-in-the-folder-of-the-tenant", "ConfigMap", good=True)
    assert broken_by_update(before, update) == {"shared-object"}
    assert broken_by_update(before, {"data": {"chat.json": "{}"}}) == set()


@pytest.mark.parametrize("label", ["applicationId", "spark-app-selector"])
def test_pod_cannot_join_the_application_of_another_tenant_by_update(label: str) -> None:
    before = case("priority-class", "application-of-its-own", "Pod", good=True)
    before["metadata"]["labels"] = {}
    assert broken_by_update(before, {"metadata.labels": {label: "others-chat"}}) == {"scheduler-queue"}
    assert broken_by_update(before, {"metadata.labels": {label: "search.chat"}}) == set()


@pytest.mark.parametrize(
    ("annotation", "rule"),
    [
        ("external-dns.alpha.kubernetes.io/hostname", "dns-name"),
        ("getambassador.io/config", "service-annotation"),
        ("ad.datadoghq.com/service.instances", "service-annotation"),
        ("ad.datadoghq.com/endpoints.resolve", "service-annotation"),
        ("io.cilium/global-service", "service-annotation"),
    ],
)
def test_service_with_an_annotation_cannot_get_or_change_one(annotation: str, rule: str) -> None:
    before = case("tenant-services", "in-another-network", "Service")
    before["metadata"]["annotations"] = {"io.cilium/global-service": "false"}
    assert rule in broken_by_update(before, {"metadata.annotations": {annotation: "x"}})
    assert broken_by_update(before, {"metadata.annotations": {"team": "x"}}) == set()
