"""A model that takes long to load cannot follow a load that comes back in the morning: the plan warns."""

import pytest

from shared.fleets import one

POOL = "{gpu: H200-SXM-141GB, nodes: 8, gpusPerNode: 8, network: rdma-400g, rdmaResource: rdma/hca}"
LOAD = "traffic: {requestsPerSecond: 10, inputTokens: 2000, outputTokens: 800}, slo: {ttft: 3s, tpot: 60ms}"
DEEPSEEK = f"source: deepseek-ai/DeepSeek-V3, context: 65536, {LOAD}"
WARNING = (
    "a new replica serves after 23 minutes, and a quiet time leaves 1 of 4: a load that returns waits so long. Set"
    " `replicas.min` to what it needs, up to 4"
)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", [WARNING]),
        (", replicas: {min: 1, max: 4}", [WARNING]),
        (", replicas: {min: 4, max: 6}", []),
        (", replicas: 4", []),
    ],
)
def test_few_replicas_of_a_model_that_loads_slowly_are_warned_of(more: str, expected: list[str]) -> None:
    found = one(POOL, f"{{{DEEPSEEK}{more}}}")
    assert [each for each in found.warnings if "a new replica serves" in each] == expected


def test_model_that_loads_within_minutes_is_not_warned_of() -> None:
    small = f"{{source: Qwen/Qwen3-8B, context: 8192, {LOAD}}}"
    found = one("{gpu: L40S-48GB, nodes: 64}", small)
    assert found.replicas > 1
    assert not [each for each in found.warnings if "a new replica serves" in each]
