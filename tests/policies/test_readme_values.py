"""The smallest values of each chart's README pass the policies of the smallest values of chart platform."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
import yaml

from charts.each_chart import CHARTS, Chart, Values, chart_of
from charts.kit import Object, pods
from rayhelm.check.admission.evaluate import PolicyViolation, evaluate_policies, find_namespace, index_namespaces
from rayhelm.check.admission.policy import AdmissionPolicy, read_policies


def smallest(chart: Chart) -> Values:
    (text,) = re.findall(r"## The smallest values\n\n```yaml\n(.*?)```", chart.readme, re.DOTALL)
    values: Values = yaml.safe_load(text)
    return values


def is_by_tenant(item: Object) -> bool:
    """Whether a member of the tenant installs it: controllers create the pods."""
    return bool(item["kind"] != "Pod")


@cache
def default_policies() -> tuple[AdmissionPolicy, ...]:
    platform = chart_of("platform")
    return tuple(read_policies(platform.objects(smallest(platform))))


def violations(objects: list[Object], known: Mapping[str, Mapping[str, Any]]) -> list[PolicyViolation]:
    return [
        violation
        for item in [*objects, *pods(objects)]
        for violation in evaluate_policies(
            default_policies(), item, find_namespace(item, known), by_tenant=is_by_tenant(item)
        )
    ]


@pytest.mark.parametrize("chart", CHARTS, ids=str)
def test_smallest_values_of_the_readme_pass_the_default_policies(chart: Chart) -> None:
    assert violations(chart.objects(smallest(chart)), {}) == []


def test_smallest_ray_service_passes_in_the_namespace_of_the_smallest_tenant() -> None:
    """Its pods need the label of the tenant there."""
    tenant, service = chart_of("tenant"), chart_of("ray-service")
    known = {service.namespace: index_namespaces(tenant.objects(smallest(tenant)))[tenant.release]}
    other, own = ({**smallest(service), "tenant": name} for name in ("other", tenant.release))
    assert {each.rule for each in violations(service.objects(other), known)} == {"gpu-tenant", "tenant-label"}
    assert violations(service.objects(own), known) == []
