"""`plan` and `fit` give the same memory figures for the same settings."""

import pytest

from rayhelm.errors import FleetError
from rayhelm.facts import load_catalog
from rayhelm.planner.memory.fit import Fit, fit
from shared.fleets import one

POOL = "{gpu: RTX-2070-8GB, nodes: 1}"
WHISPER = (
    "{source: openai/whisper-large-v3, task: transcribe, gpuFraction: %s,"
    " engine: {max_num_seqs: 256, enforce_eager: true}}"
)


def ask(utilization: float) -> Fit:
    facts = load_catalog()
    return fit(
        facts.model("openai/whisper-large-v3"),
        [facts.gpu("RTX-2070-8GB")],
        gpu_memory_utilization=utilization,
        max_num_seqs=256,
        enforce_eager=True,
    )


@pytest.mark.parametrize(("share", "utilization"), [(0.4, 0.36), (0.5, 0.46)], ids=["no-cache", "small-cache"])
def test_plan_and_fit_miss_the_same_memory(share: float, utilization: float) -> None:
    with pytest.raises(FleetError) as caught:
        one(POOL, WHISPER % share)
    (problem,) = caught.value.problems
    missing = problem.message.partition(" GiB of memory are missing")[0].rpartition(" ")[2]
    assert f"{missing} GiB are missing" in ask(utilization).reason


@pytest.mark.parametrize(("share", "utilization"), [(0.6, 0.55), (0.95, 0.87)])
def test_plan_and_fit_have_the_same_cache(share: float, utilization: float) -> None:
    model, answer = one(POOL, WHISPER % share), ask(utilization)
    assert model.gpu_memory_utilization == utilization
    assert model.kv_cache_tokens == answer.kv_cache_tokens
