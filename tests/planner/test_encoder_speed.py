"""The audio encoder counts in the speed of a transcription: it computes 30 s of audio for each request."""

import pytest

from rayhelm.planner.plan import ModelPlan
from rayhelm.planner.speed.query import SpeedQuery, answer_query
from shared.fleets import one

WHISPER = "source: openai/whisper-large-v3, context: 448, task: transcribe"


def planned(rate: float, gpu: str = "L4-24GB") -> ModelPlan:
    load = f"traffic: {{requestsPerSecond: {rate}, inputTokens: 200, outputTokens: 150}}, slo: {{ttft: 2s}}"
    return one(f"{{gpu: {gpu}, nodes: 10}}", f"{{{WHISPER}, {load}}}")


def test_one_l4_transcribes_at_most_ten_requests_a_second() -> None:
    found = planned(5)
    (reason,) = (each for each in found.reasons if each.decision == "replicas")
    rate = reason.numbers["requests_per_second_per_replica"]
    assert isinstance(rate, float)
    assert 5 < rate <= 10
    assert any("speed of the audio encoder" in each for each in found.unknown)


def test_more_requests_than_the_encoders_compute_need_more_replicas() -> None:
    assert (planned(5).replicas, planned(20).replicas) == (1, 3)


def test_first_token_waits_for_the_encoder() -> None:
    lengths = {"input_tokens": 4, "output_tokens": 100, "concurrency": 1}
    slow, fast = (
        answer_query(SpeedQuery(model="openai/whisper-large-v3", gpu=gpu, **lengths))
        for gpu in ("L4-24GB", "H100-SXM-80GB")
    )
    # 2.59 TFLOP at 40 % of 121 and of 989 TFLOP/s
    assert slow.ttft_s.mid - fast.ttft_s.mid > 0.8 * 2.59 / 0.4 * (1 / 121 - 1 / 989)
    assert slow.ttft_s.mid == pytest.approx(0.06, abs=0.03)
