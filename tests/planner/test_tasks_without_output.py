"""Plans of tasks with one forward pass per request: embeddings and reranking."""

import pytest

from rayhelm.planner.plan import ModelPlan
from shared.fleets import one

SOURCES = {"embed": "BAAI/bge-m3", "rerank": "BAAI/bge-reranker-v2-m3"}


def planned(task: str, more: str = "") -> ModelPlan:
    load = "traffic: {requestsPerSecond: 1, inputTokens: 400}, replicas: {min: 1, max: 3}"
    return one("{gpu: L4-24GB, nodes: 4}", f"{{source: {SOURCES[task]}, task: {task}, {load}{more}}}")


@pytest.mark.parametrize("task", SOURCES)
def test_no_more_requests_are_in_flight_than_the_pinned_sequences(task: str) -> None:
    pinned = planned(task, ", engine: {max_num_seqs: 4}")
    assert pinned.target_ongoing_requests is not None
    assert pinned.target_ongoing_requests <= 4 < (planned(task).target_ongoing_requests or 0)
