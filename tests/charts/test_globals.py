"""`global.imageRegistry` and `global.imagePullSecrets` reach every image and every pod of every chart."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from charts.each_chart import CHARTS, Chart, chart_of
from charts.kit import Object, example, over, parsed
from rayhelm.check.admission.evaluate import evaluate_policies, find_namespace
from rayhelm.check.admission.policy import read_policies
from rayhelm.deploy.charts.helm import render
from rayhelm.deploy.compose.policies import build_policies
from rayhelm.deploy.images.objects import list_images_of
from rayhelm.deploy.images.reference import parse_reference
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.errors import FleetError
from rayhelm.live.probe.policy import POLICY
from rayhelm.live.probe.targets import list_images, read_registry
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load

REGISTRY = "registry.example:5000/mirror"
GLOBALS = {"global": {"imageRegistry": REGISTRY, "imagePullSecrets": ["pull", {"name": "other"}], "of": "another"}}
DIGEST = f"sha256:{'1' * 64}"
FLEET = """\
fleet: mirrored
clusters:
  main:
    apiServer: {cidrs: [10.0.0.1/32]}
    probe: {image: {repository: registry.example/team/rayhelm, tag: 0.2.0}}
    values: {global: {imageRegistry: mirror.example}}
pools:
  gpu: {gpu: L4-24GB, nodes: 2}
models:
  chat: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, unpinnedReason: a test of globals}
"""


def everything(chart: Chart) -> dict[str, Any]:
    return example("everything" if chart.name == "ray-service" else f"{chart.name}/everything")


def list_pod_specs(node: Any) -> Iterator[Object]:
    if isinstance(node, list):
        for each in node:
            yield from list_pod_specs(each)
    if isinstance(node, dict):
        if "containers" in node and node.get("kind") != "ValidatingAdmissionPolicy":
            yield node
        for each in node.values():
            yield from list_pod_specs(each)


@pytest.mark.parametrize("chart", CHARTS, ids=str)
def test_every_image_and_pod_has_the_globals(chart: Chart) -> None:
    plain = chart.objects(everything(chart))
    moved = chart.objects(over(everything(chart), GLOBALS))
    expected = {str(parse_reference(text).move(REGISTRY)) for item in plain for text in list_images_of(item)}
    images = {text for item in moved for text in list_images_of(item)}
    assert images == expected
    assert all(text.startswith(f"{REGISTRY}/") for text in images)
    assert bool(images) == (chart.name not in ("tenant", "argocd"))
    accounts = {item["metadata"]["name"]: item for item in moved if item["kind"] == "ServiceAccount"}
    for spec in list_pod_specs(moved):
        secrets = spec.get("imagePullSecrets") or accounts[spec["serviceAccountName"]]["imagePullSecrets"]
        assert {"pull", "other"} <= {secret["name"] for secret in secrets}
    for item in moved:
        if item["kind"] == "ClusterPolicy":
            operands = [part for part in item["spec"].values() if "repository" in part]
            assert operands
            assert [part["imagePullSecrets"] for part in operands] == [["pull", "other"]] * len(operands)


@pytest.mark.parametrize(
    ("image", "rendered"),
    [
        ({"repository": "haproxy", "tag": "3.4"}, f"{REGISTRY}/docker.io/library/haproxy:3.4"),
        ({"repository": "team/haproxy", "tag": "3.4"}, f"{REGISTRY}/docker.io/team/haproxy:3.4"),
        ({"repository": "localhost/haproxy", "tag": "3.4"}, f"{REGISTRY}/localhost/haproxy:3.4"),
        ({"repository": "other.example:5000/a/haproxy", "tag": "3.4"}, f"{REGISTRY}/other.example-5000/a/haproxy:3.4"),
        ({"repository": f"{REGISTRY}/haproxy", "tag": "3.4"}, f"{REGISTRY}/haproxy:3.4"),
        ({"repository": "haproxy", "tag": "3.4", "digest": DIGEST}, f"{REGISTRY}/docker.io/library/haproxy@{DIGEST}"),
    ],
)
def test_chart_names_a_copy_as_the_mirror_does(image: dict[str, str], rendered: str) -> None:
    chart = chart_of("gateway")
    objects = chart.objects(over(chart.smallest(), {**GLOBALS, "image": image}))
    assert {text for item in objects for text in list_images_of(item)} == {rendered}
    tag = image["tag"] if "digest" not in image else ""
    assert str(parse_reference(image["repository"]).move(REGISTRY)) == rendered.removesuffix(f":{tag}").split("@")[0]


@pytest.mark.parametrize("registry", ["mirror", "mirror/path", "https://registry.example", "registry.example/", "a b"])
def test_registry_that_no_image_name_can_begin_with_is_refused(registry: str) -> None:
    chart = chart_of("gateway")
    with pytest.raises(FleetError, match="imageRegistry"):
        chart.objects(over(chart.smallest(), {"global": {"imageRegistry": registry}}))


def test_charts_of_a_parent_chart_have_its_registry(tmp_path: Path) -> None:
    (tmp_path / "charts").mkdir()
    charts = [chart_of("ray-service"), chart_of("gateway")]
    for chart in charts:
        (tmp_path / "charts" / chart.name).symlink_to(chart.folder)
    below = [{"name": chart.name, "version": "0.1.0", "repository": ""} for chart in charts]
    about = {"apiVersion": "v2", "name": "parent", "version": "0.1.0", "dependencies": below}
    tmp_path.joinpath("Chart.yaml").write_text(json.dumps(about))
    values = {chart.name: chart.smallest() for chart in charts} | GLOBALS
    images = {text for item in parsed(render(str(tmp_path), "llm", "llm", values)) for text in list_images_of(item)}
    assert len(images) > 1
    assert all(text.startswith(f"{REGISTRY}/docker.io/") for text in images)


def test_policies_trust_in_the_mirror_what_they_trust_elsewhere() -> None:
    chart = chart_of("platform")
    objects = chart.objects(over(chart.smallest(), GLOBALS))
    policies = list(read_policies(item for item in objects if "image-source" in item["metadata"]["name"]))
    pod: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "ray", "namespace": "models", "labels": {"ray.io/cluster": "chat"}},
        "spec": {"containers": [{"name": "ray", "image": f"{REGISTRY}/docker.io/rayproject/ray-llm:2.60.0"}]},
    }
    assert evaluate_policies(policies, pod, find_namespace(pod, {})) == []
    pod["spec"] = {"containers": [{"name": "ray", "image": f"{REGISTRY}/docker.io/else/ray-llm:2.60.0"}]}
    assert {each.rule for each in evaluate_policies(policies, pod, find_namespace(pod, {}))} == {"image-source"}


def test_policy_of_a_fleet_lists_the_copies_of_its_services() -> None:
    loaded = load(FLEET)
    plan = plan_fleet(loaded)
    values = RayServiceValues.model_validate({"global": {"imageRegistry": REGISTRY}})
    registries = build_policies("main", plan, dict.fromkeys(plan.services, values)).image_source.registries
    assert f"{REGISTRY}/docker.io/rayproject/ray-llm" in registries


def test_jobs_of_the_probe_have_the_images_that_its_policy_lists() -> None:
    loaded = load(FLEET)
    registry = read_registry(loaded.fleet, "main")
    images = list_images(loaded.fleet, "main", "", registry)
    assert [each.split("/")[0] for each in images] == ["mirror.example"]
    chart = chart_of("platform")
    probe = {
        "probe": {
            "enabled": True,
            "image": {"repository": "registry.example/team/rayhelm", "tag": "0.2.0"},
            "fleet": FLEET,
            "images": list_images(loaded.fleet, "main", ""),
        },
        "networkPolicy": {"apiServer": {"cidrs": ["10.0.0.1/32"]}},
        "global": {"imageRegistry": registry},
    }
    found = {(item["kind"], item["metadata"]["name"]): item for item in chart.objects(over(chart.smallest(), probe))}
    policy = found["ValidatingAdmissionPolicy", POLICY]["spec"]
    (allowed,) = (each["expression"] for each in policy["variables"] if each["name"] == "images")
    assert all(f'"{image}"' in allowed for image in images)
    cronjob = found["CronJob", "rayhelm-probe"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert "--registry=mirror.example" in cronjob["containers"][0]["command"]
    assert "imagePullSecrets" not in cronjob
