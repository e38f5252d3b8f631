"""The images of a cluster have the Ray and vLLM of the plan, or the fleet file says the versions."""

import pytest

from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.errors import FleetError, Problem
from rayhelm.facts.versions import versions
from rayhelm.planner.planner import plan_fleet
from shared.apply_fix import check_fixes
from shared.fleets import load

RAY, VLLM, STOCK = versions().ray, versions().vllm, versions().images["ray"]


def fleet(cluster_image: str, pool_image: str = "") -> str:
    pool = f", image: {{{pool_image}}}" if pool_image else ""
    return (
        f"fleet: images\nclusters: {{main: {{apiServer: {{cidrs: [10.0.0.1/32]}}, image: {{{cluster_image}}}}}}}\n"
        f"pools: {{gpu: {{gpu: L4-24GB, nodes: 1{pool}}}}}\nmodels: {{chat: {{source: Qwen/Qwen3-0.6B}}}}\n"
    )


def the_problem(text: str) -> Problem:
    with pytest.raises(FleetError) as caught:
        load(text)
    check_fixes(text, list(caught.value.problems), load)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("image", "message", "tag"),
    [
        ("repository: rayproject/ray-llm, tag: 2.55.0-py311-cu128", f"Ray 2.55.0, and the plan is for Ray {RAY}", None),
        (
            "repository: registry.example/ray-vllm, tag: 2.55.1-ours",
            "tag `2.55.1-ours` is of Ray 2.55.1",
            f"{RAY}-ours",
        ),
        ("repository: registry.example/llm, tag: 2.55.1-py312", "of Ray 2.55.1", f"{RAY}-py312"),
        (f"repository: registry.example/ray, tag: {RAY}-vllm0.12.1", "of vLLM 0.12.1", f"{RAY}-vllm{VLLM}"),
        ("repository: vllm/vllm-openai-rocm, tag: v0.12.1", "of vLLM 0.12.1", f"v{VLLM}"),
    ],
)
def test_image_of_another_version_is_refused(image: str, message: str, tag: str | None) -> None:
    problem = the_problem(fleet(image))
    assert problem.path == "clusters.main.image"
    assert message in problem.message
    assert problem.fix.value["tag"] == (tag or STOCK.tag)
    assert len(problem.alternatives) == 1


def test_fix_of_an_image_has_no_digest_of_the_other_one() -> None:
    digest = "sha256:" + 64 * "0"
    problem = the_problem(fleet(f"repository: rayproject/ray-llm, tag: 2.55.0-py311-cu128, digest: '{digest}'"))
    assert problem.fix.value == {"repository": STOCK.repository, "tag": STOCK.tag}


@pytest.mark.parametrize(
    "image",
    [
        f"repository: rayproject/ray-llm, tag: {STOCK.tag}",
        f"repository: registry.example/team/ray-vllm, tag: {RAY}-ours",
        "repository: registry.example/llm/serving, tag: 2.1.0",  # a version of its own
        "repository: registry.example/llm/rayhelm-vllm, tag: '7'",
        f"repository: registry.example/ray-vllm, tag: 2.1.0, ray: {RAY}",
    ],
)
def test_image_without_another_version_is_accepted(image: str) -> None:
    assert not [text for text in plan_fleet(load(fleet(image))).warnings if "nothing was tested with yours" in text]


def test_versions_of_the_fleet_file_are_rendered_and_warned_of() -> None:
    text = fleet("repository: registry.example/ray-vllm, tag: 2.61.0-ours, ray: 2.61.0, vllm: 0.30.0")
    plan = plan_fleet(load(text))
    (warning,) = [text for text in plan.warnings if "nothing was tested with yours" in text]
    assert f"`clusters.main.image` has Ray 2.61.0, and not {RAY}; vLLM 0.30.0, and not {VLLM}" in warning
    (values,) = build_ray_service_values(plan).values()
    assert values.ray.version == "2.61.0"


@pytest.mark.parametrize("key", ["tag: 2.55.0-py312", "tag: '7', ray: 2.55.0"])
def test_worker_image_with_another_ray_than_the_head_is_refused(key: str) -> None:
    text = fleet(f"repository: registry.example/ray, tag: {RAY}", f"repository: registry.example/ray-b, {key}")
    problem = the_problem(text)
    assert problem.path == "pools.gpu.image"
    assert f"has Ray 2.55.0, and the head of its cluster has Ray {RAY}" in problem.message
