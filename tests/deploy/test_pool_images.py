"""Pools of AMD and Intel GPUs, and of nodes with arm64, are rendered with an image for them."""

import pytest

from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.errors import FleetError, Problem
from rayhelm.planner.planner import plan_fleet
from shared.apply_fix import check_fixes
from shared.fleets import load

CUDA, ROCM = ("{repository: registry.example/cuda, tag: '1'}", "{repository: registry.example/rocm, tag: '1'}")
NVIDIA, AMD = "gpu: L4-24GB, nodes: 1", "gpu: MI300X-192GB, nodes: 1"


def values(text: str) -> dict[str, RayServiceValues]:
    loaded = load(text)
    with loaded.document.joined():
        return build_ray_service_values(plan_fleet(loaded))


def fleet(cluster_image: str = "", **pools: str) -> str:
    image = f", image: {cluster_image}" if cluster_image else ""
    lines = ["fleet: images", f"clusters: {{main: {{apiServer: {{cidrs: [10.0.0.1/32]}}{image}}}}}", "pools:"]
    lines += [f"  {name}: {{{pool}}}" for name, pool in pools.items()]
    lines += ["models:"]
    lines += [f"  on-{name}: {{source: Qwen/Qwen3-0.6B, context: 4096, pool: {name}}}" for name in pools]
    return "\n".join(lines) + "\n"


def the_problem(text: str) -> Problem:
    with pytest.raises(FleetError) as caught:
        values(text)
    check_fixes(text, list(caught.value.problems), values)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("pool", "platform", "image"),
    [
        (AMD, "ROCm", "ray-vllm-rocm"),
        ("gpu: Arc-A770-16GB, nodes: 1", "XPU", "ray-vllm-xpu"),
        ("gpu: Gaudi-3-128GB, nodes: 1", "HPU", "ray-vllm-hpu"),
    ],
    ids=["amd", "intel", "gaudi"],
)
def test_default_image_is_refused_on_gpus_of_other_vendors(pool: str, platform: str, image: str) -> None:
    problem = the_problem(fleet(gpu=pool))
    assert (problem.path, problem.line) == ("pools.gpu", 4)
    assert f"need an image for {platform}, and the default image rayproject/ray-llm:" in problem.message
    assert problem.message.endswith("is for CUDA")
    assert problem.fix_text.startswith(f"image: {{repository: registry.example/{image}, tag:")


def test_image_of_the_cluster_is_refused_on_gpus_of_two_vendors() -> None:
    problem = the_problem(fleet(CUDA, nvidia=NVIDIA, amd=AMD))
    assert problem.path == "pools.amd"
    assert "registry.example/cuda is also the image of pool `nvidia`, whose GPUs are of nvidia" in problem.message


@pytest.mark.parametrize(
    "text",
    [
        fleet(amd=f"{AMD}, image: {ROCM}"),
        fleet(ROCM, amd=AMD),
        fleet(CUDA, nvidia=NVIDIA, amd=f"{AMD}, image: {ROCM}"),
        fleet(nvidia=NVIDIA),
    ],
    ids=["own-image", "image-of-an-amd-cluster", "two-vendors", "default-on-nvidia"],
)
def test_image_is_accepted_on_gpus_of_one_vendor(text: str) -> None:
    assert values(text)


SPARK = "gpu: DGX-Spark-128GB, nodes: 1"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (fleet(gpu=SPARK), "clusters.main.image"),
        (fleet(gpu="gpu: GB200-186GB, nodes: 1, gpusPerNode: 4"), "clusters.main.image"),
        (
            fleet("{repository: docker.io/rayproject/ray-llm, tag: 2.60.0-py312-cu130}", gpu=SPARK),
            "clusters.main.image",
        ),
        (fleet(gpu=f"{SPARK}, image: {{repository: rayproject/ray-llm, tag: 2.60.0-py312-cu130}}"), "pools.gpu.image"),
        (fleet(nvidia=f"{NVIDIA}, nodeSelector: {{a: b}}", gpu=f"{SPARK}, nodeSelector: {{a: c}}"), "pools.gpu.image"),
        (
            fleet(gpu="hosts: [{gpu: H100-SXM-80GB, nodeSelector: {a: c}}, {gpu: GH200-96GB, nodeSelector: {a: b}}]"),
            "clusters.main.image",
        ),
    ],
    ids=["default", "rack", "cluster", "pool", "beside-amd64", "hosts-of-both"],
)
def test_image_for_amd64_is_refused_on_arm64(text: str, path: str) -> None:
    problem = the_problem(text)
    assert problem.path == "pools.gpu"
    assert "have arm64 processors, and " in problem.message
    assert "rayproject/ray-llm is built for amd64" in problem.message
    assert problem.fix.path == path
    assert problem.fix.value["repository"] == "registry.example/ray-vllm-arm64"


@pytest.mark.parametrize(
    "image", [CUDA, "{repository: rayproject/ray-llm, tag: 2.60.0-py312-cu130-aarch64}"], ids=["own", "of-ray"]
)
def test_other_image_is_accepted_on_arm64(image: str) -> None:
    assert values(fleet(image, gpu=SPARK))


def test_amd_pool_can_be_planned_without_an_image() -> None:
    assert plan_fleet(load(fleet(gpu=AMD))).models
