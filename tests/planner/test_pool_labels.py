"""Pools with the same GPU resource are distinguished by node labels."""

import pytest

from rayhelm.errors import FleetError, Problem
from shared.apply_fix import check_fixes
from shared.fleets import plan


def fleet(first: str, second: str, more: str = "") -> str:
    chat = "source: Qwen/Qwen3-0.6B, context: 4096"
    return (
        f"fleet: labels\npools:\n  first: {first}\n  second: {second}\n"
        f"models:\n  one: {{{chat}, pool: first}}\n  two: {{{chat}, pool: second}}\n{more}"
    )


def problems(text: str) -> tuple[Problem, ...]:
    with pytest.raises(FleetError) as caught:
        plan(text)
    check_fixes(text, list(caught.value.problems), plan)
    return caught.value.problems


def test_pools_with_the_same_gpu_are_refused_without_labels() -> None:
    first, second = problems(
        fleet("{gpu: H100-SXM-80GB, nodes: 1}", "{gpu: H100-SXM-80GB, nodes: 1, network: ethernet-1g}")
    )
    assert (first.path, first.line, second.line) == ("pools.first", 3, 4)
    assert "can also start on nodes of `second` (H100-SXM-80GB): both offer `nvidia.com/gpu`" in first.message
    assert first.fix_text.startswith("nodeSelector: {rayhelm.dev/pool: first}")


def test_amd_pools_are_offered_the_labels_of_the_catalog() -> None:
    image = "image: {repository: registry.example/rocm, tag: '1'}"
    text = fleet(f"{{gpu: MI300X-192GB, nodes: 1, {image}}}", f"{{gpu: MI325X-256GB, nodes: 1, {image}}}")
    first, second = problems(text)
    assert first.fix_text.startswith("nodeSelector: {amd.com/gpu.device-id: 74a1}")
    assert second.fix_text.startswith("nodeSelector: {amd.com/gpu.device-id: 74a5}")


def test_pool_without_labels_is_refused_when_only_the_other_has_one() -> None:
    (problem,) = problems(
        fleet("{gpu: L4-24GB, nodes: 1}", "{gpu: L4-24GB, nodes: 1, nodeSelector: {example.com/pool: second}}")
    )
    assert problem.path == "pools.first"


def test_hosts_of_one_pool_are_refused_when_nothing_distinguishes_them() -> None:
    image = "image: {repository: registry.example/rocm, tag: '1'}"
    hosts = "{gpu: MI300X-192GB}, {gpu: MI325X-256GB}"
    text = (
        f"fleet: labels\npools:\n  lab: {{hosts: [{hosts}], {image}}}\n"
        "models: {one: {source: Qwen/Qwen3-0.6B, context: 4096}}\n"
    )
    first, second = problems(text)
    assert first.path == second.path == "pools.lab.hosts"
    assert "{gpu: MI300X-192GB, nodeSelector: {amd.com/gpu.device-id: 74a1}}" in first.fix_text


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("{gpu: L4-24GB, nodes: 1}", "{gpu: H100-SXM-80GB, nodes: 1}"),
        (
            "{gpu: L4-24GB, nodes: 1, nodeSelector: {pool: a}}",
            "{gpu: L4-24GB, nodes: 1, nodeSelector: {pool: b}}",
        ),
        (
            "{gpu: L4-24GB, nodes: 1, tolerations: [{key: example.com/a}]}",
            "{gpu: L4-24GB, nodes: 1, tolerations: [{key: example.com/b}]}",
        ),
        ("{gpu: L4-24GB, nodes: 1}", "{gpu: L4-24GB, nodes: 1, spot: aks}"),
        ("{gpu: H100-SXM-80GB, nodes: 1}", "{gpu: H100-SXM-80GB, nodes: 1, sharing: {shares: 2}}"),
    ],
    ids=["products", "labels", "taints", "spot-taint", "resources"],
)
def test_pools_are_accepted_when_something_distinguishes_them(first: str, second: str) -> None:
    assert set(plan(fleet(first, second)).models) == {"one", "two"}


def test_pools_of_two_clusters_need_no_labels() -> None:
    clusters = "clusters: {main: {}, edge: {}}\n"
    assert plan(fleet("{gpu: L4-24GB, nodes: 1}", "{gpu: L4-24GB, nodes: 1, cluster: edge}", clusters)).models
