"""`rayhelm images` lists every image of a fleet; the fleet with the mirror's keys uses no other registry."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from charts.each_chart import CHARTS, Chart
from charts.kit import over, rendered
from rayhelm.check.lint.fleet import check_fleet
from rayhelm.deploy.images.collect import ImageOfFleet, collect_images
from rayhelm.deploy.images.mirror import build_mirror_values, check_mirror, list_copy_commands
from rayhelm.deploy.images.objects import list_images_of
from rayhelm.deploy.images.reference import ImageReference, parse_reference
from rayhelm.deploy.render.files import render_fleet
from rayhelm.errors import UsageError

VALUES = Path(__file__).parents[2] / "values"
FLEETS = sorted(path.parent.name for path in VALUES.glob("*/fleet.yaml"))
MIRROR = "registry.example:5000/mirror"
DIGEST = f"sha256:{'1' * 64}"
EVERY_IMAGE = f"""
fleet: every
clusters:
  main:
    apiServer: {{cidrs: [10.0.0.1/32]}}
    prometheus: {{url: http://prometheus.monitoring:9090}}
    gpuOperator: {{clusterPolicy: true}}
    image: {{repository: registry.example/ray, tag: "1", digest: "{DIGEST}", includesRayhelm: true}}
    probe: {{image: {{repository: registry.example/rayhelm, tag: 0.2.0}}}}
    gateway: {{allowedClients: [apps]}}
    values:
      metrics: {{adapter: {{kind: Managed, tls: {{skipVerifyReason: a trial of this fleet}}}}}}
pools:
  gpu: {{gpu: L4-24GB, nodes: 1, nodeSelector: {{example.com/pool: gpu}}}}
  arc:
    gpu: ARC-PRO-B60-24GB
    nodes: 1
    nodeSelector: {{example.com/pool: arc}}
    sharing: {{shares: 2}}
    image: {{repository: registry.example/ray-xpu, tag: "1"}}
models:
  chat: {{source: Qwen/Qwen3-8B, context: 8192, pool: gpu, unpinnedReason: an example}}
  small: {{source: Qwen/Qwen3-0.6B, context: 4096, pool: arc, unpinnedReason: an example}}
services:
  chat:
    tenant: apps
    values:
      weights: {{download: {{image: "registry.example/hub:1"}}}}
      test: {{image: "registry.example/busybox@{DIGEST}"}}
tenants:
  apps: {{gpus: 2, models: [chat, small]}}
"""


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("every") / "fleet.yaml"
    file.write_text(EVERY_IMAGE)
    return file


@cache
def collect(path: Path) -> tuple[ImageOfFleet, ...]:
    return collect_images(render_fleet(path))


def by_repository(images: tuple[ImageOfFleet, ...]) -> dict[str, list[str]]:
    return {each.image.repository: [".".join(key.path) for key in each.keys] for each in images}


def test_images_of_a_fleet_are_listed_with_the_keys_that_name_them(every: Path) -> None:
    found = by_repository(collect(every))
    assert found["registry.example/ray"] == ["clusters.main.image"]
    assert found["registry.example/ray-xpu"] == ["pools.arc.image"]
    assert found["haproxy"] == ["clusters.main.gateway.values.image"]
    assert found["registry.example/rayhelm"] == ["clusters.main.probe.image"]
    assert found["registry.example/hub"] == ["services.chat.values.weights.download.image"]
    assert found["registry.example/busybox"] == ["services.chat.values.test.image"]
    assert found["registry.k8s.io/prometheus-adapter/prometheus-adapter"] == [
        "clusters.main.values.metrics.adapter.image"
    ]
    assert found["nvcr.io/nvidia/k8s-device-plugin"]
    assert found["intel/intel-gpu-plugin"] == ["clusters.main.values.intel.image"]
    digests = {each.image.repository: each.image.digest for each in collect(every)}
    assert (digests["registry.example/ray"], digests["registry.example/busybox"]) == (DIGEST, DIGEST)


@pytest.mark.parametrize("name", FLEETS)
def test_every_image_of_a_reference_fleet_has_a_key_of_the_fleet_file(name: str) -> None:
    images = collect(VALUES / name / "fleet.yaml")
    assert images
    assert [each.image for each in images if not each.keys] == []


@pytest.mark.parametrize(
    ("chart", "example"), [(chart, example) for chart in CHARTS for example in chart.examples], ids=str
)
def test_no_image_of_an_object_is_missed(chart: Chart, example: str) -> None:
    release = "" if chart.name == "ray-service" else chart.release
    for item in rendered(chart=chart.name, base=example, release=release, namespace=chart.namespace):
        assert set(list_image_texts(item)) == set(list_images_of(item)), item["kind"]


def list_image_texts(node: Any) -> Iterator[str]:
    """Texts of keys that are called like an image, wherever they are."""
    if isinstance(node, list):
        for each in node:
            yield from list_image_texts(each)
    if isinstance(node, dict):
        if {"repository", "image", "version"} <= node.keys():
            yield f"{node['repository']}/{node['image']}:{node['version']}"
            return
        for key, value in node.items():
            if key in ("image", "reference") and isinstance(value, str):
                yield value
            yield from list_image_texts(value)


def test_mirrored_fleet_uses_the_mirror_alone_and_passes_lint(every: Path, tmp_path: Path) -> None:
    images = collect(every)
    mirrored = tmp_path / "fleet.yaml"
    mirrored.write_text(yaml.safe_dump(over(yaml.safe_load(EVERY_IMAGE), build_mirror_values(images, MIRROR))))
    moved = collect(mirrored)
    assert {each.image.repository.startswith(f"{MIRROR}/") for each in moved} == {True}
    assert len(moved) == len(images)
    assert sorted(each.image.digest for each in moved) == sorted(each.image.digest for each in images)
    assert check_fleet(mirrored, ask_ray=False).problems == []
    assert list_copy_commands(moved, MIRROR, "skopeo") == []
    assert build_mirror_values(moved, MIRROR) == {}


def test_copy_commands_name_all_architectures_and_the_digest(every: Path) -> None:
    images = collect(every)
    skopeo = list_copy_commands(images, MIRROR, "skopeo")
    assert (
        f"skopeo copy --all --preserve-digests docker://registry.example/ray@{DIGEST}"
        f" docker://{MIRROR}/registry.example/ray:1" in skopeo
    )
    assert any(line.endswith(f"docker://{MIRROR}/registry.example/busybox:sha256-111111111111") for line in skopeo)
    crane = list_copy_commands(images, MIRROR, "crane")
    assert f"crane copy docker.io/library/haproxy:3.4.7 {MIRROR}/docker.io/library/haproxy:3.4.7" in crane
    assert len(skopeo) == len(crane) == len(images)


def test_images_of_one_cluster_are_listed_alone() -> None:
    rendered = render_fleet(VALUES / "three-tiers" / "fleet.yaml")
    (ray,) = [each for each in collect_images(rendered, "edge") if each.image.repository == "rayproject/ray-llm"]
    assert [".".join(key.path) for key in ray.keys] == ["clusters.edge.image"]
    with pytest.raises(UsageError, match="there is no cluster `nowhere`"):
        collect_images(rendered, "nowhere")


@pytest.mark.parametrize(
    ("text", "reference", "full"),
    [
        ("haproxy:3.4.7", ImageReference("haproxy", "3.4.7"), "docker.io/library/haproxy"),
        ("rayproject/ray-llm:1", ImageReference("rayproject/ray-llm", "1"), "docker.io/rayproject/ray-llm"),
        ("localhost:5000/a/b", ImageReference("localhost:5000/a/b"), "localhost:5000/a/b"),
        (f"r.example/a:1@{DIGEST}", ImageReference("r.example/a", "1", DIGEST), "r.example/a"),
        (f"r.example:5000/a@{DIGEST}", ImageReference("r.example:5000/a", "", DIGEST), "r.example:5000/a"),
    ],
)
def test_reference_is_parsed(text: str, reference: ImageReference, full: str) -> None:
    assert parse_reference(text) == reference
    assert str(reference) == text
    assert reference.full_repository == full


@pytest.mark.parametrize(
    ("mirror", "fix"),
    [
        ("https://registry.example/m/", "registry.example/m"),
        ("Registry.Example/m", "registry.example/m"),
        ("mirror", "registry.example/mirror"),
        ("registry.example/m:1/", "registry.example/mirror"),
        ("registry.example/a b; rm", "registry.example/mirror"),
    ],
)
def test_mirror_that_is_no_registry_is_refused_with_a_fix(mirror: str, fix: str) -> None:
    with pytest.raises(UsageError, match="is not a registry") as caught:
        check_mirror(mirror)
    assert str(caught.value).endswith(f"fix: --mirror {fix}")
    assert check_mirror(fix) == fix
