"""Data parallel ranks that share experts: their memory, their GPUs, and what is refused."""

import pytest

from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.deploy.serve_models import list_llm_configs
from rayhelm.errors import FleetError
from rayhelm.facts import load_catalog
from rayhelm.facts.engines import find_engine
from rayhelm.planner.alternative_change import plan_with
from rayhelm.planner.alternatives import list_alternatives
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
    (values,) = build_ray_service_values(planned).values()
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


@pytest.mark.parametrize(
    ("pin", "says", "path", "ranks"),
    [
        ("{data: 3}", "3 data parallel ranks do not divide the GPUs of a host", "models.model.parallelism.data", 4),
        ("{data: 6}", "6 data parallel ranks do not divide", "models.model.parallelism.data", 8),
        ("{data: 3, tensor: 2}", "3 data parallel ranks of TP 2 do not divide", "models.model.parallelism.data", 4),
    ],
)
def test_ranks_that_do_not_divide_a_host_are_refused(pin: str, says: str, path: str, ranks: int) -> None:
    problem = refused(HOST, f"{{source: {DEEPSEEK}, context: 8192, parallelism: {pin}}}")
    assert says in problem.message
    assert problem.fix is not None
    assert (problem.fix.path, problem.fix.value) == (path, ranks)


def test_ranks_of_several_hosts_become_as_many_in_several_replicas() -> None:
    problem = refused(HOST, f"{{source: {DEEPSEEK}, context: 8192, parallelism: {{data: 12, tensor: 1}}}}")
    assert problem.fix is not None
    assert "2 of them have the ranks" in problem.fix.why


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
    alone = query.model_copy(update={"expert_parallel": False})
    assert ["does not fit" in " ".join(answer_query(each).notes) for each in (query, alone)] == [False, True]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [({"llm_configs": [{"a": 1}, {"b": 2}]}, 2), ({"llm_config": {"a": 1}}, 1), ({"model": "x"}, 0), (None, 0)],
)
def test_models_of_an_application_are_found_in_both_forms(arguments: dict[str, object] | None, expected: int) -> None:
    assert len(list_llm_configs({"args": arguments})) == expected


def _write_fleet_with_latent_attention(gpu: str, source: str, answer: int = 800, more: str = "") -> str:
    return f"""
fleet: latent
clusters: {{main: {{apiServer: {{cidrs: [10.0.0.1/32]}}}}}}
pools: {{gpu: {{gpu: {gpu}, nodes: 4, gpusPerNode: 8, price: 1 USD/h}}}}
models:
  chat:
    source: {source}
    context: 32768
    traffic: {{requestsPerSecond: 10, inputTokens: 2000, outputTokens: {answer}}}
    slo: {{ttft: 3s, tpot: 60ms}}
    {more}
"""


@pytest.mark.parametrize(
    ("gpu", "source", "answer"),
    [("H200-SXM-141GB", DEEPSEEK, 800), ("B200-SXM-180GB", "deepseek-ai/DeepSeek-R1", 2000)],
)
def test_ranks_with_half_of_the_gpus_are_listed_for_latent_attention(gpu: str, source: str, answer: int) -> None:
    """Tensor parallel ranks repeat the KV cache of latent attention, so that it needs 32 GPUs."""
    loaded = load(_write_fleet_with_latent_attention(gpu, source, answer))
    planned = plan_fleet(loaded)
    (ranks,) = (each for each in list_alternatives(planned)["chat"] if each.kind == "data parallel")
    assert (planned.models["chat"].gpus, ranks.gpus, ranks.replicas) == (32, 16, 2)
    assert (ranks.data_parallel_size, ranks.tensor_parallel_size) == (8, 1)
    assert (ranks.price_per_hour, ranks.saving_per_hour) == (16, 16)
    changed = plan_with(planned, ranks.change).models["chat"]
    assert (changed.gpus, changed.split) == (16, "DP 8 x TP 1 x PP 1 with EP")


@pytest.mark.parametrize(("source", "more"), [(DEEPSEEK, "parallelism: {tensor: 8}"), ("Qwen/Qwen3-235B-A22B-FP8", "")])
def test_ranks_are_not_listed_beside_a_pin_or_without_latent_attention(source: str, more: str) -> None:
    loaded = load(_write_fleet_with_latent_attention("H200-SXM-141GB", source, more=more))
    found = list_alternatives(plan_fleet(loaded)).get("chat", [])
    assert "data parallel" not in [each.kind for each in found]
