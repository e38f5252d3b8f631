"""Expert parallelism: which sizes it allows, its memory, and when the planner chooses it."""

import pytest

from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.facts import load_catalog
from rayhelm.facts.engines import find_engine
from rayhelm.planner.memory.gpu_memory import count_stage_weights, estimate_activation
from rayhelm.planner.memory.parallelism import list_split_errors, list_tensor_parallel_sizes
from rayhelm.planner.planner import plan_fleet
from rayhelm.planner.shape import ReplicaShape
from rayhelm.planner.speed.query import SpeedQuery, answer_query
from shared.fleets import load, one, refused

ENGINE, _ = find_engine("0.29.0")
QWEN = "Qwen/Qwen3-235B-A22B-FP8"
DENSE = "Qwen/Qwen3-32B"
HOST = "{gpu: H100-SXM-80GB, nodes: 1, gpusPerNode: 8}"


def list_errors(model: str, tp: int) -> tuple[str, ...]:
    return list_split_errors(load_catalog().model(model), ReplicaShape(tp, has_expert_parallel=True), ENGINE)


@pytest.mark.parametrize(
    ("model", "sizes"),
    [(QWEN, (2, 4, 8, 16, 32)), ("deepseek-ai/DeepSeek-V3", (2, 4, 8, 16)), (DENSE, ())],
)
def test_expert_parallelism_allows_sizes_that_do_not_divide_an_expert(model: str, sizes: tuple[int, ...]) -> None:
    assert list_tensor_parallel_sizes(load_catalog().model(model), ENGINE, has_expert_parallel=True) == sizes


@pytest.mark.parametrize(
    ("model", "tp", "said"),
    [
        (DENSE, 8, "has no experts"),
        (QWEN, 1, "tensor parallel size 1 has one GPU"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", 16, "8 experts are fewer than the 16 GPUs"),
        (QWEN, 3, "64 attention heads are not divisible"),
    ],
)
def test_useless_expert_parallelism_is_refused_with_a_reason(model: str, tp: int, said: str) -> None:
    assert any(said in error for error in list_errors(model, tp))


def test_whole_experts_take_as_much_memory_as_parts_when_they_divide_evenly() -> None:
    model = load_catalog().model(QWEN)
    parts, whole = (
        count_stage_weights(model, ReplicaShape(4, has_expert_parallel=expert), ENGINE) for expert in (False, True)
    )
    assert whole == pytest.approx(parts)


def test_gpu_with_one_expert_more_is_counted_when_they_do_not_divide_evenly() -> None:
    """Ten experts on four GPUs: vLLM gives some of them three."""
    model = load_catalog().model(QWEN)
    assert model.experts
    ten = model.model_copy(update={"experts": model.experts.model_copy(update={"count": 10, "active": 2})})
    even, uneven = (
        sum(count_stage_weights(ten, ReplicaShape(4, has_expert_parallel=expert), ENGINE)) for expert in (False, True)
    )
    experts = ten.layers * 3 * ten.hidden * model.experts.intermediate
    assert uneven - even == pytest.approx((3 - 10 / 4) * experts, rel=0.01)


def test_working_memory_counts_whole_experts() -> None:
    model = load_catalog().model(QWEN)
    parts, whole = (
        estimate_activation(
            model, ReplicaShape(8, 1, 1, expert), seqs=16, tokens=8192, last_stage=False, engine=ENGINE
        ).bytes
        for expert in (False, True)
    )
    assert whole > parts


def test_pinned_expert_parallelism_is_planned_with_its_reason() -> None:
    model = one(HOST, f"{{source: {QWEN}, context: 8192, parallelism: {{tensor: 8, expert: true}}}}")
    (reason,) = (reason for reason in model.reasons if reason.decision == "expert_parallel")
    assert (model.tensor_parallel_size, model.expert_parallel, model.split) == (8, True, "TP 8 x PP 1 with EP")
    assert reason.because.startswith("pinned in the fleet file; without it vLLM refuses tensor parallel size 8")
    assert reason.numbers == {"experts": 128, "experts_per_gpu": 16}


@pytest.mark.parametrize(("parallelism", "expected"), [("{tensor: 8}", True), ("{tensor: 4}", False)])
def test_experts_stay_whole_only_where_they_cannot_be_divided(parallelism: str, expected: bool) -> None:
    assert one(HOST, f"{{source: {QWEN}, context: 8192, parallelism: {parallelism}}}").expert_parallel is expected


def test_planner_chooses_expert_parallelism_when_only_it_meets_the_slo() -> None:
    """TP 4 is the largest size without it; its pessimistic end misses this objective."""
    model = "{source: %s, context: 8192, slo: {tpot: %s}, traffic: {requestsPerSecond: 1, inputTokens: 800, %s}}"
    loose, tight = (one(HOST, model % (QWEN, tpot, "outputTokens: 200")) for tpot in ("60ms", "14ms"))
    assert (loose.tensor_parallel_size, loose.expert_parallel) == (4, False)
    assert (tight.tensor_parallel_size, tight.expert_parallel) == (8, True)


@pytest.mark.parametrize(
    ("source", "parallelism", "says"),
    [
        (DENSE, "{tensor: 8, expert: true}", "expert parallelism needs a mixture-of-experts model"),
        (DENSE, "{expert: true}", "expert parallelism needs a mixture-of-experts model"),
        (QWEN, "{tensor: 1, expert: true}", "tensor parallel size 1 has one GPU"),
        (QWEN, "{tensor: 8, expert: false}", "not a multiple of the quantization group 128"),
        (QWEN, "{tensor: 16, expert: true}", "no pool has the hosts for TP 16 x PP any with expert parallelism"),
    ],
)
def test_impossible_pin_of_expert_parallelism_is_refused(source: str, parallelism: str, says: str) -> None:
    problem = refused(HOST, f"{{source: {source}, context: 8192, parallelism: {parallelism}}}")
    assert says in problem.message
    assert problem.line


def test_values_carry_expert_parallelism_as_an_engine_argument() -> None:
    text = f"""
fleet: big
clusters: {{main: {{apiServer: {{cidrs: [10.0.0.1/32]}}}}}}
pools: {{gpu: {HOST}}}
models: {{chat: {{source: {QWEN}, context: 8192, parallelism: {{tensor: 8}}}}}}
"""
    loaded = load(text)
    (values,) = build_ray_service_values(plan_fleet(loaded)).values()
    engine = values.serve.applications["chat"].models["chat"].engine
    assert (engine.tensor_parallel_size, engine.enable_expert_parallel) == (8, True)


def test_estimate_counts_the_memory_of_expert_parallelism() -> None:
    query = SpeedQuery(
        model=QWEN,
        gpu="H100-SXM-80GB",
        tensor_parallel_size=8,
        expert_parallel=True,
        input_tokens=1000,
        output_tokens=200,
        concurrency=4,
    )
    assert not any("refuses" in note for note in answer_query(query).notes)
