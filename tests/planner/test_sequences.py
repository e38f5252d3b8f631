"""`max_num_seqs` is raised above 256 where that saves replicas, and only there."""

import pytest

from rayhelm.planner.plan import ModelPlan
from shared.fleets import one

GPT = "source: openai/gpt-oss-120b, context: 65536, slo: {ttft: 2s, tpot: 30ms}"
MIXTRAL = "source: mistralai/Mixtral-8x7B-Instruct-v0.1, context: 32768, slo: {ttft: 1s, tpot: 40ms}"
LLAMA = "source: meta-llama/Llama-3.1-8B-Instruct, context: 8192"


def planned(gpu: str, model: str, rate: float, lengths: tuple[int, int], more: str = "") -> ModelPlan:
    prompt, answer = lengths
    load = f"traffic: {{requestsPerSecond: {rate}, inputTokens: {prompt}, outputTokens: {answer}}}"
    return one(f"{{gpu: {gpu}, nodes: 8, gpusPerNode: 8}}", f"{{{model}, {load}{more}}}")


@pytest.mark.parametrize(
    ("gpu", "model", "rate", "lengths", "usual", "gpus"),
    [
        ("B200-SXM-180GB", GPT, 60, (1000, 1000), 6, 4),
        ("H100-SXM-80GB", MIXTRAL, 100, (1000, 300), 24, 20),
    ],
)
def test_sequences_are_raised_where_256_limit_a_replica(
    gpu: str, model: str, rate: float, lengths: tuple[int, int], usual: int, gpus: int
) -> None:
    pinned = planned(gpu, model, rate, lengths, ", engine: {max_num_seqs: 256}")
    found = planned(gpu, model, rate, lengths)
    assert (pinned.gpus, found.gpus) == (usual, gpus)
    assert found.max_num_seqs in (512, 1024)
    (reason,) = (each for each in found.reasons if each.decision == "max_num_seqs")
    assert reason.because == "256 would limit each replica, and the load would need more replicas"
    assert not found.tight


def test_sequences_stay_at_256_where_more_save_no_replica() -> None:
    assert planned("B200-SXM-180GB", GPT, 5, (1000, 1000)).max_num_seqs == 256
    assert planned("L40S-48GB", LLAMA, 100, (1000, 300)).max_num_seqs == 256


def test_fewest_sequences_that_save_as_much_are_chosen() -> None:
    found = planned("B200-SXM-180GB", GPT, 60, (1000, 1000))
    more = planned("B200-SXM-180GB", GPT, 60, (1000, 1000), ", engine: {max_num_seqs: 1024}")
    assert (found.max_num_seqs, found.replicas) == (512, more.replicas)
