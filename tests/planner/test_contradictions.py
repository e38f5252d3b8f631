"""Loads and pins that cannot hold are refused with a fix that is accepted."""

import pytest

from rayhelm.errors import FleetError
from shared.apply_fix import check_fixes
from shared.fleets import plan

FLEET = """
fleet: test
pools: {{dc: {{gpu: H100-SXM-80GB, nodes: 1, gpusPerNode: 8}}}}
models:
  chat:
    source: Qwen/Qwen3-8B
    revision: 0123456789abcdef0123456789abcdef01234567
    task: chat
    context: 16384
    {line}
"""


@pytest.mark.parametrize(
    ("line", "key", "message"),
    [
        ("traffic: {requestsPerSecond: 0, inputTokens: 9, outputTokens: 9}", "requestsPerSecond", "greater than 0"),
        ("traffic: {requestsPerSecond: .inf, inputTokens: 9, outputTokens: 9}", "requestsPerSecond", "not `.inf`"),
        ("traffic: {requestsPerSecond: 1, inputTokens: 0, outputTokens: 9}", "inputTokens", "greater than 0"),
        ("slo: {ttft: 0s}", "ttft", "more than zero"),
        ("replicas: {min: 4, max: 2}", "replicas", "`min` is 4 and `max` is 2"),
        ("{gpuFraction: 0.5, parallelism: {tensor: 2}}", "gpuFraction", "cannot be split over several GPUs"),
        ("{parallelism: {tensor: 2}, engine: {tensor_parallel_size: 4}}", "tensor_parallel_size", "not allowed below"),
        (
            "engine: {max_num_seqs: 64, max_num_batched_tokens: 32}",
            "max_num_batched_tokens",
            "below `max_num_seqs` of 64",
        ),
        (
            "engine: {max_num_batched_tokens: 8192, enable_chunked_prefill: false}",
            "max_num_batched_tokens",
            "without chunked prefill",
        ),
        ("{gpuFraction: 0.5, engine: {gpu_memory_utilization: 0.9}}", "gpu_memory_utilization", "`gpuFraction` of 0.5"),
    ],
)
def test_contradiction_is_refused_with_its_line_and_a_fix(line: str, key: str, message: str) -> None:
    if line.startswith("{"):
        line = line[1:-1].replace(", parallelism", "\n    parallelism").replace(", engine", "\n    engine")
    text = FLEET.format(line=line)
    with pytest.raises(FleetError) as error:
        plan(text)
    (problem, *_) = error.value.problems
    assert (problem.path or "").endswith(key)
    assert message in problem.message
    assert (problem.line or 0) >= 10
    assert problem.fix
    check_fixes(text, list(error.value.problems), plan)


@pytest.mark.parametrize(
    "line",
    [
        "engine: {max_num_seqs: 64, max_num_batched_tokens: 64}",
        "gpuFraction: 0.5\n    engine: {gpu_memory_utilization: 0.46}",
        "engine: {max_num_batched_tokens: 8192}",
    ],
)
def test_limit_that_holds_is_planned(line: str) -> None:
    assert plan(FLEET.format(line=line)).models["chat"].replicas
