"""Everything that the chart platform renders is what Kubernetes and the operators take, with either Helm."""

from typing import Any

import pytest
import yaml

from charts.kit import HELMS, VALUES, rendered, values_file
from charts.oracles import built_in
from rayhelm.charts.helm import charts_dir, lint
from rayhelm.versions import versions

EXAMPLES = sorted(f"platform/{path.stem}" for path in (VALUES / "platform").glob("*.yaml"))
ABOUT = yaml.safe_load((charts_dir() / "platform/Chart.yaml").read_text())
OLDEST = ABOUT["kubeVersion"].removeprefix(">=").removesuffix(".0-0")
KUBERNETES = [OLDEST, *versions().kubernetes.supported]
BUILT_IN = {
    *("PriorityClass", "RuntimeClass"),
    *("APIService", "ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Service", "ServiceAccount"),
    *("ClusterRole", "ClusterRoleBinding", "RoleBinding"),
    *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
}
"""Kinds of Kubernetes itself; those of operators have tests of their own."""
OF_OPERATORS = {"ScaledObject", "ClusterPolicy", "DeviceConfig", "GpuDevicePlugin"}
Object = dict[str, Any]


def objects(example: str, helm: str = "4") -> list[Object]:
    return rendered(chart="platform", base=example, release="platform", namespace="rayhelm-system", helm=helm)


@pytest.mark.parametrize("kubernetes", KUBERNETES)
@pytest.mark.parametrize("example", EXAMPLES)
def test_objects_match_the_schemas_of_kubernetes(example: str, kubernetes: str) -> None:
    for item in objects(example):
        if item["kind"] in BUILT_IN:
            built_in(item, kubernetes)


@pytest.mark.parametrize("example", EXAMPLES)
def test_both_helms_render_the_same(example: str) -> None:
    by_name = [
        {(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]): item for item in found}
        for found in (objects(example, helm) for helm in HELMS)
    ]
    assert by_name[0] == by_name[1]


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize("kubernetes", KUBERNETES)
def test_lint_has_no_complaint(helm: str, kubernetes: str) -> None:
    for example in EXAMPLES:
        lint("platform", [values_file(example)], kube_version=kubernetes, helm=HELMS[helm])
    lint("platform", {}, kube_version=kubernetes, helm=HELMS[helm])


@pytest.mark.parametrize("example", EXAMPLES)
def test_objects_are_unique(example: str) -> None:
    names = [(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in objects(example)]
    assert len(set(names)) == len(names)


def test_examples_render_every_kind_of_the_chart() -> None:
    assert {item["kind"] for example in EXAMPLES for item in objects(example)} == BUILT_IN | OF_OPERATORS
