"""Everything that the chart platform renders is what Kubernetes and the operators take, with either Helm."""

from typing import Any

import yaml

from charts.kit import VALUES, rendered
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.facts.versions import versions

EXAMPLES = sorted(f"platform/{path.stem}" for path in (VALUES / "platform").glob("*.yaml"))
ABOUT = yaml.safe_load((charts_dir() / "platform/Chart.yaml").read_text())
OLDEST = ABOUT["kubeVersion"].removeprefix(">=").removesuffix(".0-0")
KUBERNETES = list(dict.fromkeys([OLDEST, *versions().kubernetes.accepted]))
BUILT_IN = {
    *("PriorityClass", "RuntimeClass"),
    *("APIService", "ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Namespace", "Service", "ServiceAccount"),
    *("ClusterRole", "ClusterRoleBinding", "CronJob", "NetworkPolicy", "Role", "RoleBinding"),
    *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
}
"""Kinds of Kubernetes itself; those of operators have tests of their own."""
OF_OPERATORS = {
    *("ClusterPolicy", "DeviceConfig", "GpuDevicePlugin"),
    *("GrafanaDashboard", "PrometheusRule", "ScaledObject"),
}
Object = dict[str, Any]


def objects(example: str, helm: str = "4") -> list[Object]:
    return rendered(chart="platform", base=example, release="platform", namespace="rayhelm-system", helm=helm)


def test_examples_render_every_kind_of_the_chart() -> None:
    assert {item["kind"] for example in EXAMPLES for item in objects(example)} == BUILT_IN | OF_OPERATORS
