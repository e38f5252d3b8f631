"""Replicas on the GPUs of a pool, as the map shows them."""

from collections import Counter
from pathlib import Path

import pytest

from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.fleet.load import load_fleet
from rayhelm.planner.gpu_map import MappedNode, map_pool
from rayhelm.planner.planner import plan_fleet
from shared.fleets import plan

FLEETS = sorted((charts_dir().parent / "values").glob("*/fleet.yaml"))
SMALL = "source: Qwen/Qwen3-0.6B, context: 4096"


def models_of(node: MappedNode) -> list[list[str]]:
    return [[part.model for part in parts] for parts in node.gpus]


@pytest.mark.parametrize("fleet", FLEETS, ids=lambda path: path.parent.name)
def test_every_replica_of_a_reference_fleet_has_its_gpus(fleet: Path) -> None:
    planned = plan_fleet(load_fleet(fleet))
    for pool in planned.pools:
        found = Counter(part.model for node in map_pool(planned, pool) for parts in node.gpus for part in parts)
        models = [model for model in planned.models.values() if model.pool == pool]
        assert found == {model.model: model.replicas * model.gpus_per_replica for model in models}


@pytest.mark.parametrize("fleet", FLEETS, ids=lambda path: path.parent.name)
def test_parts_on_a_gpu_fit_into_its_memory(fleet: Path) -> None:
    planned = plan_fleet(load_fleet(fleet))
    for node in (node for pool in planned.pools for node in map_pool(planned, pool)):
        for parts in node.gpus:
            used = sum(part.weights_gib + part.kv_gib for part in parts)
            assert used < (node.group.memory_gib or float("inf"))


def test_pods_of_a_replica_are_on_different_nodes() -> None:
    (*nodes,) = map_pool(
        plan(
            f"""
fleet: map
pools: {{gpu: {{gpu: L4-24GB, nodes: 3, gpusPerNode: 2, network: ethernet-100g}}}}
models: {{chat: {{{SMALL}, parallelism: {{tensor: 1, pipeline: 3}}}}}}
"""
        ),
        "gpu",
    )
    assert [models_of(node) for node in nodes] == [[["chat"], []]] * 3


def test_models_of_one_service_share_a_gpu_and_other_services_do_not() -> None:
    (*nodes,) = map_pool(
        plan(
            f"""
fleet: map
pools: {{gpu: {{gpu: L4-24GB, nodes: 1, gpusPerNode: 4}}}}
models:
  one: {{{SMALL}, gpuFraction: 0.4, service: both}}
  two: {{{SMALL}, gpuFraction: 0.4, service: both}}
  other: {{{SMALL}, gpuFraction: 0.4}}
"""
        ),
        "gpu",
    )
    assert sorted(models_of(nodes[0])) == [[], [], ["one", "two"], ["other"]]


def test_small_replicas_leave_whole_nodes_to_large_ones() -> None:
    (*nodes,) = map_pool(
        plan(
            f"""
fleet: map
pools: {{gpu: {{gpu: L4-24GB, nodes: 2, gpusPerNode: 2}}}}
models:
  small: {{{SMALL}, replicas: 2}}
  large: {{{SMALL}, parallelism: {{tensor: 2}}}}
"""
        ),
        "gpu",
    )
    assert sorted(models_of(node) for node in nodes) == [[["large"], ["large"]], [["small"], ["small"]]]


def test_stages_are_on_the_hosts_that_the_plan_names() -> None:
    planned = plan(
        f"""
fleet: map
pools:
  lab:
    network: ethernet-1g
    hosts: [{{name: a, gpu: L4-24GB, gpus: 2}}, {{name: b, gpu: T4-16GB}}, {{name: c, gpu: L4-24GB, gpus: 2}}]
models:
  split: {{{SMALL}, parallelism: {{tensor: 2, pipeline: 2}}}}
  small: {{{SMALL}}}
"""
    )
    nodes = {node.group.name: models_of(node) for node in map_pool(planned, "lab")}
    assert planned.models["split"].hosts == ("a", "c")
    assert planned.models["small"].hosts == ("b",)
    assert nodes == {"a": [["split"], ["split"]], "b": [["small"]], "c": [["split"], ["split"]]}
