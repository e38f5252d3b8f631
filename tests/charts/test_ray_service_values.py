"""Values, versions and documents of the chart ray-service agree, in addition to the tests that all charts share."""

import re

import yaml

from charts.kit import example, only, over, parsed
from rayhelm.deploy.charts.helm import charts_dir, render
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.facts.versions import versions

CHART = charts_dir() / "ray-service"


def test_chart_and_values_have_the_same_ray_version():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert chart["appVersion"] == values["ray"]["version"] == versions().ray
    assert values["kuberay"]["version"] == versions().kuberay.default
    image = versions().images["ray"]
    assert {**values["image"], **image.model_dump(exclude={"vendors", "architectures"})} == values["image"]


def test_supported_kuberay_versions_are_accepted():
    for version in versions().kuberay.supported:
        RayServiceValues.model_validate({"kuberay": {"version": version}})


def test_smallest_values_of_the_readme_serve_their_model():
    (values,) = re.findall(r"## The smallest values\n\n```yaml\n(.*?)```", (CHART / "README.md").read_text(), re.DOTALL)
    service = only(parsed(render("ray-service", "chat", "models", yaml.safe_load(values))), "RayService")
    assert "qwen3-8b" in service["spec"]["serveConfigV2"]


def test_overlays_merge_by_name():
    two = over(
        example("minimal"),
        {"workerGroups": {"more": {"gpu": {"count": 0}, "resources": {"limits": {"cpu": 2, "memory": "16Gi"}}}}},
    )
    groups = only(parsed(render("ray-service", "chat", "models", two)), "RayService")["spec"]["rayClusterConfig"]
    assert [group["groupName"] for group in groups["workerGroupSpecs"]] == ["gpu", "more"]


def test_partial_section_keeps_its_other_defaults():
    values = RayServiceValues.model_validate(
        {
            "gcsFaultTolerance": {"passwordSecret": {"name": "redis"}},
            "networkPolicy": {"operator": {"podLabels": {"a": 1}}},
        }
    )
    assert values.gcs_fault_tolerance.password_secret.key == "password"
    assert values.network_policy.operator.namespace == "kuberay-system"
