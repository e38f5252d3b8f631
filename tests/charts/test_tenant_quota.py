"""Quotas of the chart tenant: members may create no kind of object without a limit."""

from typing import Any

import pytest

from charts.kit import example, over
from rayhelm.deploy.charts.helm import template


def render(overlay: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    values = over(example("tenant/minimal"), overlay or {})
    return [dict(item) for item in template("tenant", "research", "tenants", values)]


def list_creatable(objects: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Return (group, resource) of what any role of the chart may create."""
    return {
        (group, resource)
        for role in objects
        if role["kind"] == "Role"
        for rule in role["rules"]
        if "create" in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def collect_limits(objects: list[dict[str, Any]]) -> dict[str, str]:
    quotas = [item["spec"] for item in objects if item["kind"] == "ResourceQuota"]
    return {name: limit for spec in quotas if "scopeSelector" not in spec for name, limit in spec["hard"].items()}


def test_quota_counts_every_kind_that_members_may_create() -> None:
    objects = render()
    creatable, limits = list_creatable(objects), collect_limits(objects)
    assert ("networking.k8s.io", "networkpolicies") in creatable
    uncounted = [
        resource
        for group, resource in sorted(creatable)
        if resource not in limits and f"count/{resource}{f'.{group}' if group else ''}" not in limits
    ]
    assert uncounted == []


@pytest.mark.parametrize("kind", ["networkPolicies", "serviceAccounts", "podMonitors"])
def test_limit_of_objects_is_what_the_value_says(kind: str) -> None:
    resource = {
        "networkPolicies": "count/networkpolicies.networking.k8s.io",
        "serviceAccounts": "count/serviceaccounts",
        "podMonitors": "count/podmonitors.monitoring.coreos.com",
    }[kind]
    assert collect_limits(render({"quota": {"objects": {kind: 7}}}))[resource] == "7"


def test_namespace_has_the_queues_and_drivers_of_the_tenant() -> None:
    (without,) = (item for item in render() if item["kind"] == "Namespace")
    assert "rayhelm.dev/scheduler-queues" not in without["metadata"]["annotations"]
    assert "rayhelm.dev/dashboard-folder" not in without["metadata"]["annotations"]
    overlay = {
        "quota": {"schedulerQueues": ["a", "root.a"]},
        "csiDrivers": ["secrets-store.csi.k8s.io"],
        "dashboardFolder": "a",
    }
    (found,) = (item for item in render(overlay) if item["kind"] == "Namespace")
    assert found["metadata"]["annotations"]["rayhelm.dev/scheduler-queues"] == "a,root.a"
    assert found["metadata"]["annotations"]["rayhelm.dev/csi-drivers"] == "secrets-store.csi.k8s.io"
    assert found["metadata"]["annotations"]["rayhelm.dev/dashboard-folder"] == "a"
