"""Data parallel ranks that share experts: their memory, their GPUs, and what is refused."""

import pytest

from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.deploy.serve_models import list_llm_configs
from rayhelm.errors import FleetError
from rayhelm.facts import load_catalog
from rayhelm.facts.engines import find_engine
from rayhelm.planner.deployment_names import name_llm_deployment
from rayhelm.planner.memory.gpu_memory import count_stage_weights
from rayhelm.planner.planner import plan_fleet
from rayhelm.planner.shape import ReplicaShape
from rayhelm.planner.speed.query import SpeedQuery, answer_query
from shared.fleets import load, one, refused

ENGINE, _ = find_engine("0.29.0")
DEEPSEEK = "deepseek-ai/DeepSeek-V3"
HOST = "{gpu: H200-SXM-141GB, nodes: 2, gpusPerNode: 8}"
LOAD = "traffic: {requestsPerSecond: 4, inputTokens: 2000, outputTokens: 400}"


def test_ranks_share_experts_and_repeat_attention() -> None:
    model = load_catalog().model(DEEPSEEK)
    tensor, ranks, alone = (
        sum(count_stage_weights(model, ReplicaShape(tp, 1, dp, tp * dp > 1), ENGINE))
        for tp, dp in ((8, 1), (1, 8), (1, 1))
    )
    assert tensor < ranks < alone
    assert ranks - tensor < 0.1 * alone


def test_replica_with_ranks_has_the_gpus_and_the_cache_of_all_of_them() -> None:
    model = one(HOST, f"{{source: {DEEPSEEK}, context: 32768, parallelism: {{data: 8}}, {LOAD}}}")
    (reason,) = (reason for reason in model.reasons if reason.decision == "data_parallel_size")
    assert (model.gpus, model.gpus_per_replica, model.split) == (8, 8, "DP 8 x TP 1 x PP 1 with EP")
    assert model.kv_cache_tokens == 8 * int(reason.numbers["kv_cache_tokens_per_rank"])
    assert "pinned in the fleet file: 8 ranks of TP 1" in reason.because
    assert name_llm_deployment(model) == "DPServer:model"


def test_values_have_limits_of_one_rank_and_pods_for_all() -> None:
    text = f"""
fleet: big
clusters: {{main: {{apiServer: {{cidrs: [10.0.0.1/32]}}}}}}
pools: {{gpu: {HOST}}}
models: {{chat: {{source: {DEEPSEEK}, context: 32768, parallelism: {{data: 4, tensor: 2}}, replicas: 2, {LOAD}}}}}
"""
    loaded = load(text)
    planned = plan_fleet(loaded)
    (values,) = build_ray_service_values(planned, loaded).values()
    chat, model = values.serve.applications["chat"].models["chat"], planned.models["chat"]
    assert (chat.engine.data_parallel_size, chat.engine.tensor_parallel_size) == (4, 2)
    assert chat.engine.enable_expert_parallel is True
    assert chat.placement_strategy == "PACK"
    assert chat.autoscaling.target_ongoing_requests * 4 >= model.target_ongoing_requests
    assert chat.max_ongoing_requests * 4 >= model.max_ongoing_requests > chat.max_ongoing_requests
    (group,) = values.worker_groups.values()
    assert (group.gpu.count, group.max_replicas) == (8, 2)


@pytest.mark.parametrize(
    ("source", "more", "says"),
    [
        ("Qwen/Qwen3-32B", "parallelism: {data: 2}", "data parallel ranks share experts, and Qwen/Qwen3-32B has none"),
        (DEEPSEEK, "parallelism: {data: 2, tensor: 4, pipeline: 2}", "no pool has the hosts for DP 2 x TP 4 x PP 2"),
        (DEEPSEEK, "parallelism: {data: 2, tensor: 2, pipeline: 2}", "is not planned with 2 pipeline stages"),
        (DEEPSEEK, "parallelism: {data: 8, expert: false}", "is planned with expert parallelism only"),
        (DEEPSEEK, "parallelism: {data: 16}", "no pool has the hosts for DP 16 x TP any"),
        (DEEPSEEK, "parallelism: {data: 8}, scaling: engine-queue", "was not tested with groups of data parallel"),
    ],
)
def test_ranks_that_are_not_served_are_refused_with_a_reason(source: str, more: str, says: str) -> None:
    problem = refused(HOST, f"{{source: {source}, context: 8192, {more}}}")
    assert says in problem.message
    assert problem.line


def test_ranks_over_unlike_hosts_are_refused() -> None:
    pool = "{hosts: [{gpu: H200-SXM-141GB, gpus: 8}, {gpu: H100-SXM-80GB, gpus: 8}], network: ethernet-10g}"
    with pytest.raises(FleetError, match="no pool has the hosts for DP 8"):
        one(pool, f"{{source: {DEEPSEEK}, context: 8192, parallelism: {{data: 8}}}}")


def test_estimate_counts_the_cache_of_ranks_that_share_experts() -> None:
    """One GPU cannot hold the whole model; each of eight ranks holds an eighth of its experts."""
    query = SpeedQuery(
        model=DEEPSEEK,
        gpu="H200-SXM-141GB",
        data_parallel_size=8,
        expert_parallel=True,
        input_tokens=1000,
        output_tokens=200,
        concurrency=64,
    )
    assert answer_query(query).notes == ()
    assert "does not fit" in answer_query(query.model_copy(update={"expert_parallel": False})).notes[0]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [({"llm_configs": [{"a": 1}, {"b": 2}]}, 2), ({"llm_config": {"a": 1}}, 1), ({"model": "x"}, 0), (None, 0)],
)
def test_models_of_an_application_are_found_in_both_forms(arguments: dict[str, object] | None, expected: int) -> None:
    assert len(list_llm_configs({"args": arguments})) == expected
