"""Access mode and storage class of the claims of weights, and the warning about an assumed class."""

from pathlib import Path

import pytest

from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.deploy.render.files import render_plan
from rayhelm.deploy.render.warnings import find_assumed_storage, find_single_node_claims, list_warnings
from rayhelm.planner.planner import plan_fleet
from shared.apply_fix import apply_fix
from shared.fleets import load, plan

QWEN = "source: Qwen/Qwen3-8B, context: 4096"


def fleet(pool: str, model: str = "", weights: str = "", more: str = "") -> str:
    stated = f", weights: {weights}" if weights else ""
    return (
        f"fleet: claims\nclusters: {{main: {{apiServer: {{cidrs: [10.0.0.1/32]}}{stated}}}}}\n"
        f"pools: {{gpu: {pool}}}\nmodels: {{chat: {{{QWEN}{model}}}}}\n{more}"
    )


ONE_NODE = "{gpu: H100-SXM-80GB, nodes: 1, gpusPerNode: 8}"
TWO_NODES = "{gpu: H100-SXM-80GB, nodes: 2, gpusPerNode: 8}"


@pytest.mark.parametrize(
    ("pool", "model", "mode"),
    [
        (ONE_NODE, "", "ReadWriteOnce"),
        (ONE_NODE, ", replicas: 4", "ReadWriteOnce"),
        ("{hosts: [{gpu: H100-SXM-80GB, gpus: 4}]}", ", replicas: 2", "ReadWriteOnce"),
        (TWO_NODES, "", "ReadWriteMany"),
        ("{hosts: [{gpu: L4-24GB}, {gpu: L4-24GB}]}", ", replicas: 2", "ReadWriteMany"),
    ],
)
def test_claim_is_read_write_once_when_one_node_has_all_pods(pool: str, model: str, mode: str) -> None:
    text = fleet(pool, model)
    assert build_ray_service_values(plan(text))["chat"].weights.claim.access_mode == mode


def test_default_storage_class_is_warned_of_when_several_nodes_read_a_claim() -> None:
    text = fleet(TWO_NODES)
    (problem,) = map(load(text).document.locate, find_assumed_storage(plan(text)))
    assert (problem.path, problem.line) == ("clusters.main", 2)
    assert "`chat`, so the claim is ReadWriteMany, and cluster `main` names no storage class" in problem.message
    for fix in (problem.fix, *problem.alternatives):
        assert [*find_assumed_storage(plan(str(apply_fix(load(text).document, fix))))] == []


@pytest.mark.parametrize(
    "text",
    [
        fleet(ONE_NODE),
        fleet(TWO_NODES, weights="{storageClass: nfs}"),
        fleet(TWO_NODES, weights="{accessMode: ReadWriteMany}"),
        fleet(TWO_NODES, more="services: {chat: {values: {weights: {claim: {existingClaim: models}}}}}"),
        fleet(TWO_NODES).replace("Qwen/Qwen3-8B", "/models/qwen, architecture: Qwen/Qwen3-8B"),
    ],
)
def test_default_storage_class_is_not_warned_of_when_it_is_not_assumed(text: str) -> None:
    assert [*find_assumed_storage(plan(text))] == []


def test_read_write_once_is_warned_of_when_several_nodes_read_a_claim() -> None:
    text = fleet(TWO_NODES, weights="{storageClass: gp3, accessMode: ReadWriteOnce, readSpeed: 2GB/s}")
    locate = load(text).document.locate
    (problem,) = map(locate, find_single_node_claims(plan(text)))
    assert problem.path == "clusters.main"
    assert "pods on several nodes read the weights of `chat`" in problem.message
    assert str(problem) in list_warnings(plan(text))
    fixed = load(str(apply_fix(load(text).document, problem.fix)))
    assert fixed.fleet.clusters["main"].weights.access_mode == "ReadWriteMany"
    assert fixed.fleet.clusters["main"].weights.read_speed
    assert [*find_single_node_claims(plan_fleet(fixed))] == []


def test_read_write_once_is_not_warned_of_on_one_node() -> None:
    text = fleet(ONE_NODE, ", replicas: 4", weights="{accessMode: ReadWriteOnce}")
    assert [*find_single_node_claims(plan(text))] == []


def test_services_share_a_claim_that_both_name(tmp_path: Path) -> None:
    shared = "{values: {weights: {claim: {existingClaim: models}}}}"
    text = fleet(TWO_NODES, more=f"services: {{chat: {shared}, other: {shared}}}").replace(
        "models: {chat:", f"models: {{other: {{{QWEN}}}, chat:"
    )
    rendered = render_plan(plan_fleet(load(text)))
    assert [values.weights.claim.existing_claim for values in rendered.values.values()] == ["models", "models"]
