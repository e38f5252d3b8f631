"""How the plan uses the speed model: intervals, objectives at their pessimistic end, links between stages."""

from io import StringIO

import pytest
from rich.console import Console

from rayhelm.cli.plan import build_plan_table
from rayhelm.planner.plan import ModelPlan
from shared.fleets import one, plan

H100 = "{gpu: H100-SXM-80GB, nodes: 4, gpusPerNode: 8}"
PIPELINE = "{source: Qwen/Qwen3-8B, context: 4096, parallelism: {tensor: 1, pipeline: 2}, %s}"
TRAFFIC = "traffic: {requestsPerSecond: %s, inputTokens: 2000, outputTokens: 100}"
RDMA = "rdma-400g, rdmaResource: rdma/hca"


def bound_by(model: ModelPlan) -> object:
    return next(reason.numbers["bound_by"] for reason in model.reasons if reason.decision == "replicas")


@pytest.mark.parametrize("objective", ["tpot: 40ms", "ttft: 800ms"])
def test_objective_holds_at_the_high_end_of_the_interval(objective: str) -> None:
    model = one(H100, f"{{source: Qwen/Qwen3-14B, context: 8192, slo: {{{objective}}}, {TRAFFIC % 40}}}")
    estimate = model.estimate
    assert estimate.tpot_interval_s
    assert estimate.ttft_interval_s
    assert estimate.tpot_interval_s[0] < (estimate.tpot_s or 0) < estimate.tpot_interval_s[1]
    high = estimate.tpot_interval_s[1] / 0.04 if "tpot" in objective else estimate.ttft_interval_s[1] / 0.8
    assert high <= 1
    assert not [text for text in model.warnings if "slo" in text]


def test_plan_of_a_measured_model_says_so() -> None:
    traffic = "traffic: {requestsPerSecond: 2, inputTokens: 1024, outputTokens: 512}"
    model = one(H100, f"{{source: Qwen/Qwen3-32B, context: 8192, parallelism: {{tensor: 2}}, {traffic}}}")
    assert model.estimate.basis == "interpolated"


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (
            "source: Qwen/Qwen3-14B, traffic: {requestsPerSecond: 1, inputTokens: 30000, outputTokens: 16}",
            "Prefill-bound",
        ),
        (
            "source: Qwen/Qwen3-14B, traffic: {requestsPerSecond: 1, inputTokens: 600, outputTokens: 20}",
            "responses of 20",
        ),
        (
            "source: BAAI/bge-m3, task: embed, traffic: {requestsPerSecond: 9, inputTokens: 500}",
            "No task without output",
        ),
        ("source: Qwen/Qwen3-14B, traffic: {requestsPerSecond: 1, inputTokens: 2000, outputTokens: 300}", ""),
    ],
)
def test_plan_says_that_no_measured_row_has_its_load(model: str, sentence: str) -> None:
    because = next(reason.because for reason in one(H100, f"{{{model}}}").reasons if reason.decision == "replicas")
    assert sentence in because if sentence else "measured" not in because


def test_slow_network_limits_the_requests_in_flight_of_a_pipeline() -> None:
    pools = (f"{{gpu: H100-SXM-80GB, nodes: 20, network: {network}}}" for network in ("ethernet-1g", RDMA))
    slow, fast = (one(pool, PIPELINE % (TRAFFIC % 8)) for pool in pools)
    assert bound_by(slow) == "network"
    assert bound_by(fast) != "network"
    assert slow.replicas > fast.replicas


def test_declared_latency_of_a_network_is_part_of_each_output_token() -> None:
    networks = "networks: {own: {bandwidth: 10Gbit/s, latency: %s}}"
    pool = "{gpu: L4-24GB, nodes: 8, network: own}"
    near, far = (one(pool, PIPELINE % (TRAFFIC % 0.1), networks % latency) for latency in ("50us", "20ms"))
    assert (far.estimate.tpot_s or 0) - (near.estimate.tpot_s or 0) == pytest.approx(0.02, rel=0.2)


def test_table_of_the_plan_has_latencies_with_intervals() -> None:
    found = plan(
        """
        fleet: one
        pools: {pool: {gpu: L4-24GB, nodes: 1}}
        models: {model: {source: Qwen/Qwen3-8B, context: 4096}}
        """
    )
    out = StringIO()
    Console(file=out, width=160).print(build_plan_table(found))
    assert "TTFT s" in out.getvalue()
    low, high = found.models["model"].estimate.tpot_interval_s or (0, 0)
    assert f"({low * 1000:.0f}-{high * 1000:.0f})" in out.getvalue()
    most = found.models["model"].estimate.tpot_concurrency
    assert most
    assert most > 1
    assert out.getvalue().index("of 1 ") < out.getvalue().index(f"of {most}")


@pytest.mark.parametrize(
    ("gpu", "says"),
    [
        ("L4-24GB", "TPOT that of 32 requests in flight, each with 512 input and 128 output tokens"),
        ("DGX-Spark-128GB", "one replica is planned, and there is no price per token"),
    ],
)
def test_plan_without_traffic_says_which_load_its_speed_assumes(gpu: str, says: str) -> None:
    model = one(f"{{gpu: {gpu}, nodes: 1}}", "{source: Qwen/Qwen3-8B, context: 4096, engine: {max_num_seqs: 32}}")
    assert says in next(text for text in model.unknown if text.startswith("traffic"))


def test_pessimistic_plan_of_an_unmeasured_model_has_more_replicas() -> None:
    model = "source: Qwen/Qwen3-235B-A22B-FP8, context: 8192, slo: {%s}, " + TRAFFIC % 20
    expected, pessimistic = (
        one("{gpu: H200-SXM-141GB, nodes: 16, gpusPerNode: 8}", f"{{{model % slo}}}")
        for slo in ("", "unmeasured: pessimistic")
    )
    assert pessimistic.replicas >= 1.4 * expected.replicas
    because = [
        next(each.because for each in found.reasons if each.decision == "replicas") for found in (expected, pessimistic)
    ]
    assert all("No measurement like this: experts in 8 or 16 bits" in each for each in because)
    assert ["`slo.unmeasured: pessimistic` plans with that" in each for each in because] == [True, False]


def test_pessimistic_plan_of_a_measured_load_has_the_same_size() -> None:
    traffic = "traffic: {requestsPerSecond: 2, inputTokens: 1024, outputTokens: 512}"
    model = "source: Qwen/Qwen3-32B, context: 8192, parallelism: {tensor: 2}, slo: {%s}, " + traffic
    expected, pessimistic = (one(H100, f"{{{model % slo}}}") for slo in ("", "unmeasured: pessimistic"))
    assert pessimistic.replicas == expected.replicas
