"""Models whose memory the fleet file states, and descriptions of a model that contradict each other."""

from pathlib import Path

import pytest

from rayhelm.errors import FleetError
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import parse_fleet
from rayhelm.planner.plan import Plan
from rayhelm.planner.planner import plan_fleet

POOL = "fleet: acme\npools: {dc: {gpu: H100-SXM-80GB, nodes: 1, gpusPerNode: 8}}\n"
UNKNOWN = "source: acme/Nova-30B, context: 8192"
STATED = "memory: {weights: 60GiB, kvPerToken: 160KiB, kvHeads: 8}"


def plan(model: str, pool: str = POOL) -> Plan:
    return plan_fleet(parse_fleet(parse_document(f"{pool}models: {{chat: {{{model}}}}}\n", "fleet.yaml")))


def refusal_of(model: str) -> str:
    with pytest.raises(FleetError) as error:
        plan(model)
    return str(error.value)


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def test_stated_memory_is_planned_and_marked_unchecked() -> None:
    found = plan(f"{UNKNOWN}, {STATED}").models["chat"]
    assert found.architecture == "unchecked"
    assert found.stages[0].weights_gib * found.gpus == pytest.approx(60, rel=0.01)
    assert any(
        line.startswith("memory, unchecked: `memory` of the fleet file states 60.0 GiB") for line in found.unknown
    )


def test_stated_cache_decides_the_tokens() -> None:
    tokens = [plan(f"{UNKNOWN}, memory: {{weights: 60GiB, kvPerToken: {size}}}, parallelism: {{tensor: 1}}")
              .models["chat"].kv_cache_tokens for size in ("160KiB", "80KiB")]  # fmt: skip
    assert tokens[0]
    assert tokens[1]
    assert tokens[1] == pytest.approx(2 * tokens[0], rel=0.01)


@pytest.mark.parametrize(("heads", "factor"), [("", 1), (", kvHeads: 8", 2)])
def test_stated_cache_is_divided_by_its_heads_alone(heads: str, factor: int) -> None:
    def tokens(tp: int) -> float:
        memory = f"memory: {{weights: 20GiB, kvPerToken: 160KiB{heads}}}"
        found = plan(f"{UNKNOWN}, {memory}, parallelism: {{tensor: {tp}}}").models["chat"]
        assert found.kv_cache_tokens
        return found.kv_cache_tokens / found.stages[0].kv_gib

    assert tokens(2) == pytest.approx(factor * tokens(1), rel=0.02)


def test_stated_weights_that_exceed_the_pool_are_refused() -> None:
    assert "fits in no pool" in refusal_of(f"{UNKNOWN}, memory: {{weights: 900GiB, kvPerToken: 160KiB}}")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (f"source: acme/Nova-30B, {STATED}", "`memory` needs `context`"),
        (f"{UNKNOWN}, architecture: Qwen/Qwen3-32B, {STATED}", "only one of the two can hold"),
        (f"source: Qwen/Qwen3-32B, context: 8192, {STATED}", "Qwen/Qwen3-32B is known, with weights of 61.0 GiB"),
        (f"{UNKNOWN}, memory: {{weights: 60GiB}}", "kvPerToken"),
        (f"{UNKNOWN}, memory: {{weights: -60GiB, kvPerToken: 1KiB}}", "cannot be negative"),
        (f"{UNKNOWN}, memory: {{weights: 60, kvPerToken: 1KiB}}", "60"),
        (f"{UNKNOWN}, memory: {{weights: 9000TiB, kvPerToken: 1KiB}}", "9000TiB"),
        (f"{UNKNOWN}, memory: {{weights: 60GiB, kvPerToken: 1KiB, kvHeads: 0}}", "kvHeads"),
    ],
)
def test_wrong_memory_is_refused_with_a_fix(model: str, message: str) -> None:
    said = refusal_of(model)
    assert message in said
    assert "fleet.yaml:3" in said
    assert "fix:" in said


def test_unknown_model_is_refused_with_memory_as_a_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config.json").write_text('{"architectures": ["DeepseekV4ForCausalLM"]}')
    assert "`memory` give its figures" in refusal_of("source: .")


@pytest.mark.parametrize(
    ("source", "architecture", "message"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-70B-Instruct",
         "has 70.6 billion parameters, and `source` meta-llama/Llama-3.1-8B-Instruct has 8.0 billion"),
        ("meta-llama/Llama-3.1-405B-Instruct-FP8", "meta-llama/Llama-3.1-405B-Instruct",
         "has weights of 756.0 GiB, and `source` meta-llama/Llama-3.1-405B-Instruct-FP8"),
    ],
)  # fmt: skip
def test_architecture_that_contradicts_the_source_is_refused(source: str, architecture: str, message: str) -> None:
    said = refusal_of(f"source: {source}, architecture: {architecture}")
    assert message in said
    assert "fleet.yaml:3: models.chat.architecture" in said
    assert f"architecture: {source}" in said


@pytest.mark.parametrize("source", ["s3://acme/weights", "Qwen/Qwen3-32B", "acme/finetune"])
def test_architecture_of_an_unknown_or_equal_source_is_accepted(source: str) -> None:
    assert plan(f"source: '{source}', architecture: Qwen/Qwen3-32B").models["chat"].architecture == "Qwen3ForCausalLM"


def test_plan_says_which_gpu_an_ambiguous_name_was_read_as() -> None:
    found = plan("source: Qwen/Qwen3-8B", POOL.replace("H100-SXM-80GB", "A100"))
    others = "A100-PCIe-40GB, A100-PCIe-80GB, A100-SXM-40GB"
    said = f"pool `dc`: GPU A100 is read as A100-SXM-80GB; it could also be {others}"
    assert said in found.warnings


def test_context_parallelism_is_planned_or_refused() -> None:
    engine = "source: deepseek-ai/DeepSeek-V3, engine: {decode_context_parallel_size: %s}"
    pool = POOL.replace("H100-SXM-80GB", "H200-SXM-141GB")
    assert plan(engine % 8, pool).models["chat"].gpus == 8
    with pytest.raises(FleetError, match="decode_context_parallel_size 3 does not divide"):
        plan(engine % 3, pool)
