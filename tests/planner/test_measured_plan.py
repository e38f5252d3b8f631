"""Plans with measurements of `rayhelm probe`."""

from dataclasses import replace

import pytest

from rayhelm.fleet.measurements import FleetMeasurements
from rayhelm.planner.plan import ModelPlan, Plan
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load

FLEET = """\
fleet: measured
pools:
  cheap: {{gpu: A100-SXM-80GB, nodes: 2, gpusPerNode: 4, network: {network}, price: 1.00 USD/h}}
  dense: {{gpu: H100-SXM-80GB, nodes: 1, gpusPerNode: 8, price: 4.00 USD/h}}
models:
  large:
    source: meta-llama/Llama-3.1-405B-Instruct-FP8
    context: 8192
    traffic: {{requestsPerSecond: 0.05, inputTokens: 4000, outputTokens: 100}}
    slo: {{ttft: 16s}}
"""
PAIR = {"backend": "nccl", "spread": 0.02, "busy": ""}
NODE = {"device": "cuda", "gpus": 4, "spread": 0.02, "busy": ""}


def measure(rate: float, latency: float, *, gpu: str = "A100-SXM-80GB", pool: str = "cheap", **more: object) -> object:
    pair = {**PAIR, "nodes": ["a", "b"], "gb_per_s": rate, "latency_us": latency, **more}
    return {pool: {"gpu": gpu, "measured_at": "2026-11-01T00:00:00Z", "pairs": [pair]}}


def measure_node(**figures: object) -> object:
    node = {**NODE, "node": "a", "memory_gb_per_s": 1700, "matrix_tflops": 250, **figures}
    return {"cheap": {"gpu": "A100-SXM-80GB", "measured_at": "2026-11-01T00:00:00Z", "nodes": [node]}}


def plan(network: str, pools: object = None, fleet: str = FLEET) -> Plan:
    measured = FleetMeasurements.model_validate({"pools": pools, "file": "measurements.yaml"}) if pools else None
    device = ", rdmaResource: rdma/hca" if network.startswith("rdma") else ""
    return plan_fleet(replace(load(fleet.format(network=network + device)), measured=measured))


def shape(found: ModelPlan) -> tuple[str, int, int]:
    return found.pool, found.tensor_parallel_size, found.pipeline_parallel_size


def reason(found: ModelPlan, decision: str) -> str:
    (one,) = (each for each in found.reasons if each.decision == decision)
    return one.because


def test_plan_leaves_the_pipeline_when_its_network_was_measured_slow() -> None:
    before = plan("rdma-400g").models["large"]
    after = plan("rdma-400g", measure(0.05, 90)).models["large"]
    assert shape(before) == ("cheap", 4, 2)
    assert shape(after) == ("dense", 8, 1)
    because = reason(after, "network_of_other_pool")
    assert "on pool `cheap` misses the SLO" in because
    assert "`rayhelm probe` measured 0.05 GB/s and 90 us on 2026-11-01" in because
    assert "in place of rdma-400g (50 GB/s, RDMA)" in because


def test_plan_splits_over_the_internet_tier_when_it_was_measured_fast() -> None:
    before = plan("internet").models["large"]
    after = plan("internet", measure(4, 80)).models["large"]
    assert shape(before) == ("dense", 8, 1)
    assert shape(after) == ("cheap", 4, 2)
    assert "Replicas can be split over it" in reason(after, "network")
    assert (after.price_per_hour or 0) < (before.price_per_hour or 0)


def test_plan_splits_no_replica_over_a_network_with_a_large_latency() -> None:
    found = plan("rdma-400g", measure(40, 5000))
    assert shape(found.models["large"]) == ("dense", 8, 1)
    assert any("No replica is split over it: more than 1 ms" in text for text in found.warnings)


def test_plan_counts_the_slowest_pair() -> None:
    pools = measure(40, 10)
    fast = pools["cheap"]["pairs"][0]  # type: ignore[index]
    pools["cheap"]["pairs"].append({**fast, "nodes": ["b", "c"], "gb_per_s": 0.05})  # type: ignore[index]
    found = plan("rdma-400g", pools)
    assert shape(found.models["large"]) == ("dense", 8, 1)
    assert "the slowest of 2 pairs" in reason(found.models["large"], "network_of_other_pool")


def test_plan_states_the_measured_network_of_the_pool() -> None:
    found = plan("rdma-400g", measure(40, 5))
    assert found.pools["cheap"].network == "rdma-400g (40 GB/s, 5 us, RDMA, measured)"
    assert "40 GB/s" in reason(found.models["large"], "pipeline_parallel_size")


def test_measured_latency_is_part_of_each_output_token() -> None:
    near, far = (plan("ethernet-100g", measure(4, latency)).models["large"] for latency in (50, 950))
    # 900 us, and what more requests in flight cost.
    assert near.estimate.tpot_s
    assert far.estimate.tpot_s
    assert far.estimate.tpot_s - near.estimate.tpot_s == pytest.approx(1000e-6, rel=0.2)


@pytest.mark.parametrize(
    ("pools", "message"),
    [
        (measure(0.05, 90, pool="gone"), "pool `gone` is not in the fleet file"),
        (measure(0.05, 90, gpu="L4-24GB"), "was measured with L4-24GB and has A100-SXM-80GB now"),
        (measure(0.05, 90, busy="the load of the node was 1.4 per core"), "not used, the node was busy: the load"),
        (measure(0.05, 90, spread=0.8), "not used, the rounds differ by 80%"),
        (measure(0.05, 90, backend="gloo"), "measured between CPUs, and GPUs use RDMA on rdma-400g: not used"),
    ],
    ids=["pool-that-is-gone", "other-gpus", "busy-node", "noise", "cpu-figures-of-rdma"],
)
def test_measurement_is_not_used_and_the_plan_warns(pools: object, message: str) -> None:
    found = plan("rdma-400g", pools)
    assert shape(found.models["large"]) == ("cheap", 4, 2)
    assert [text for text in found.warnings if message in text]
    assert not [each for each in found.models["large"].reasons if each.decision.startswith("network")]


def test_plan_warns_of_nodes_that_were_skipped() -> None:
    pools = {
        "cheap": {"gpu": "A100-SXM-80GB", "measured_at": "2026-11-01T00:00:00Z", "skipped": {"a+b": "no GPU free"}}
    }
    assert [text for text in plan("rdma-400g", pools).warnings if "a and b: not measured, no GPU free" in text]


def test_plan_warns_of_a_node_below_its_data_sheet() -> None:
    warnings = plan("rdma-400g", measure_node(memory_gb_per_s=900)).warnings
    assert [text for text in warnings if "node a: a memory bandwidth of 900 GB/s, and the data sheet" in text]


def test_plan_counts_with_the_measured_link_when_nvlink_is_not_in_use() -> None:
    slow, fast = (plan("rdma-400g", measure_node(link_gb_per_s=rate)) for rate in (12, 250))
    assert [text for text in slow.warnings if "carries only 12 GB/s, and the plan counts with this" in text]
    assert not [text for text in fast.warnings if "carries only" in text]
    assert shape(fast.models["large"]) == ("cheap", 4, 2)
    assert shape(slow.models["large"]) == ("dense", 8, 1)


def test_figures_of_a_cpu_do_not_replace_those_of_gpus() -> None:
    found = plan("rdma-400g", measure_node(device="cpu", memory_gb_per_s=9, matrix_tflops=0.02))
    assert found.models == plan("rdma-400g").models
