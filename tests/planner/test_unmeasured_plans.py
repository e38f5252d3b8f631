"""Plans that no measurement is like: their GPUs, and what the plan says about them."""

from dataclasses import replace

import pytest

from rayhelm.facts import load_catalog
from rayhelm.planner.plan import ModelPlan
from rayhelm.planner.shape import ReplicaShape
from rayhelm.planner.speed.build import build_replica
from rayhelm.planner.speed.coefficients import load_coefficients
from rayhelm.planner.speed.estimate import find_band
from rayhelm.planner.speed.links import find_all_reduce_gb_per_s
from rayhelm.planner.speed.model import compute_speed
from rayhelm.planner.speed.neighbors import correct
from rayhelm.planner.speed.replica import Load, StageLink
from shared.fleets import one

RDMA = "network: rdma-400g, rdmaResource: rdma/hca_shared_devices_a"
UPPER_BOUND = "the GPUs are an upper bound: each tensor parallel rank holds the whole KV cache"
UNCONFIRMED = "no measurement confirms the speed of a pipeline over 2 hosts"


def planned(pool: str, source: str, load: str, slo: str, context: int = 65536) -> ModelPlan:
    traffic = "requestsPerSecond: {}, inputTokens: {}, outputTokens: {}".format(*load.split())
    return one(f"{{{pool}}}", f"{{source: {source}, context: {context}, traffic: {{{traffic}}}, slo: {{{slo}}}}}")


def explain_replicas(model: ModelPlan) -> str:
    return next(reason.because for reason in model.reasons if reason.decision == "replicas")


def test_kimi_k2_needs_two_h200_hosts_with_a_warning() -> None:
    pool = f"gpu: H200-SXM-141GB, nodes: 8, gpusPerNode: 8, {RDMA}"
    found = planned(pool, "moonshotai/Kimi-K2-Instruct", "4 3000 600", "ttft: 4s, tpot: 80ms")
    assert (found.gpus, found.split, found.nodes_per_replica) == (16, "TP 8 x PP 2", 2)
    assert "No measurement like this: 2 pipeline stages, experts in 8 or 16 bits" in explain_replicas(found)
    assert [text for text in found.warnings if UNCONFIRMED in text]
    assert [text for text in found.warnings if UPPER_BOUND in text]


@pytest.mark.parametrize(
    ("gpu", "gpus", "split", "is_said"),
    [("L40S-48GB", 54, "TP 2 x PP 1", False), ("RTX-5090-32GB", 12, "TP 4 x PP 1", True)],
)
def test_four_gpus_over_pcie_are_planned_where_nccl_measured_fast(
    gpu: str, gpus: int, split: str, is_said: bool
) -> None:
    """NCCL reached 5.1 GB/s on four L40S, and 35 on RTX 5090."""
    source = "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic"
    found = planned(f"gpu: {gpu}, nodes: 8, gpusPerNode: 8", source, "2 1500 300", "ttft: 3s, tpot: 80ms", 16384)
    assert (found.gpus, found.split) == (gpus, split)
    because = explain_replicas(found)
    assert f"No measurement like this: {gpu}" in because
    assert ("all-reduces of 4 GPUs over PCIe" in because) == is_said


@pytest.mark.parametrize(
    ("gpu", "four", "eight"),
    [
        ("L40S-48GB", 5.1, 1.4),
        ("A100-PCIe-80GB", 6.4, 3.2),
        ("L4-24GB", 6.4, 3.2),
        ("A10G-24GB", 6.4, 3.2),
        ("RTX-PRO-6000-96GB", 22.4, 17.9),
        ("Radeon-AI-PRO-R9700-32GB", 12.8, 6.4),
    ],
)
def test_rate_over_pcie_is_that_of_the_gpu_or_of_its_generation(gpu: str, four: float, eight: float) -> None:
    kind = load_catalog().gpu(gpu)
    assert find_all_reduce_gb_per_s(kind, 4) == pytest.approx(four, abs=0.05)
    assert find_all_reduce_gb_per_s(kind, 8) == pytest.approx(eight, abs=0.05)


@pytest.mark.parametrize(("gb_per_s", "band"), [(None, "pipeline"), (3.125, "pipeline"), (1.25, "other_gpu")])
def test_pipeline_has_the_interval_of_its_gpus_over_links_of_25_gbit(gb_per_s: float | None, band: str) -> None:
    model, gpu = load_catalog().model("Qwen/Qwen3-32B"), load_catalog().gpu("H100-SXM-80GB")
    link = StageLink(gb_per_s, 60e-6) if gb_per_s else None
    replica = replace(build_replica(model, [gpu] * 2, ReplicaShape(1, 2), context=4096)[0], link=link)
    speed = compute_speed(replica, Load(1024, 512, 4))
    assert find_band(replica, speed, correct(replica, Load(1024, 512, 4), (), "auto"), elsewhere=False).name == band
    assert not load_coefficients().ttft_bands.pipeline.rows


def test_plan_on_gb200_states_its_bound_and_that_nothing_like_it_was_measured() -> None:
    pool = f"gpu: GB200-186GB, nodes: 80, gpusPerNode: 4, price: 10.5 USD/h, {RDMA}"
    found = planned(pool, "deepseek-ai/DeepSeek-R1", "30 2000 2000", "ttft: 3s, tpot: 40ms")
    assert found.kv_cache_tokens
    assert found.nodes_per_replica > 1
    assert [text for text in found.warnings if UPPER_BOUND in text]
    assert "limited by tpot objective" in explain_replicas(found)
    assert "No measurement like this: GB200-186GB, 2 pipeline stages, experts in" in explain_replicas(found)


@pytest.mark.parametrize(
    ("pool", "source", "is_said"),
    [
        ("gpu: H100-SXM-80GB, nodes: 1", "Qwen/Qwen3-14B", False),
        ("gpu: A100-SXM-80GB, nodes: 1", "Qwen/Qwen3-14B", True),
        ("gpu: RTX-4090-24GB, nodes: 1", "meta-llama/Llama-3.1-8B-Instruct", False),
    ],
)
def test_plan_names_a_gpu_without_measured_rows(pool: str, source: str, is_said: bool) -> None:
    found = planned(pool, source, "0.2 1000 300", "ttft: 10s", 4096)
    gpu = pool.split(",")[0].removeprefix("gpu: ")
    assert (f"No measurement like this: {gpu}" in explain_replicas(found)) == is_said
    assert not found.warnings or not [text for text in found.warnings if "pipeline over" in text]
