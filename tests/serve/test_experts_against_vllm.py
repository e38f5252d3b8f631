"""How vLLM divides experts over GPUs, compared with what the planner counts."""

import pytest

from rayhelm.facts import load_catalog
from rayhelm.facts.engines import find_engine
from rayhelm.facts.model import Checkpoint
from rayhelm.planner.memory.gpu_memory import count_stage_weights
from rayhelm.planner.shape import ReplicaShape

pytestmark = pytest.mark.serve

ENGINE, _ = find_engine("0.29.0")
QWEN = load_catalog().model("Qwen/Qwen3-235B-A22B-FP8")


def with_experts(count: int) -> Checkpoint:
    assert QWEN.experts
    return QWEN.model_copy(update={"experts": QWEN.experts.model_copy(update={"count": count})})


def count_expert_bytes(count: int, ranks: int) -> float:
    """The weights of the experts on the fullest GPU, besides its first one."""
    many, few = (
        sum(count_stage_weights(with_experts(each), ReplicaShape(ranks, has_expert_parallel=True), ENGINE))
        for each in (count, ranks)
    )
    return many - few


@pytest.mark.parametrize(("count", "ranks"), [(128, 8), (130, 8), (160, 16), (10, 4)])
def test_fullest_gpu_holds_as_many_experts_as_in_vllm(count: int, ranks: int) -> None:
    from vllm.model_executor.layers.fused_moe.expert_map_manager import determine_expert_map

    most = max(determine_expert_map(ranks, rank, count)[0] for rank in range(ranks))
    assert QWEN.experts
    expert = QWEN.layers * 3 * QWEN.hidden * QWEN.experts.intermediate
    assert count_expert_bytes(count, ranks) == pytest.approx((most - 1) * expert, rel=0.01)
