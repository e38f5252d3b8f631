"""Hits of the prefix cache: the model against a simulated cache, and in a plan."""

import random
from collections import OrderedDict

import pytest

from rayhelm.errors import FleetError
from rayhelm.planner.placement.prefix_cache import compute_prefix_hits
from rayhelm.planner.plan import Plan, Reason
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load

FLEET = """
fleet: test
pools: {{dc: {{gpu: H100-SXM-80GB, nodes: 4, gpusPerNode: 8}}}}
models:
  chat:
    source: Qwen/Qwen3-8B
    revision: 0123456789abcdef0123456789abcdef01234567
    task: chat
    context: 16384
    traffic: {{requestsPerSecond: {rate}, inputTokens: 6000, outputTokens: 300{more}}}
"""


def plan(more: str, rate: float = 4) -> Plan:
    return plan_fleet(load(FLEET.format(more=more, rate=rate)))


def find_reason(found: Plan, decision: str) -> Reason | None:
    return next((each for each in found.models["chat"].reasons if each.decision == decision), None)


def simulate_hits(count: int, prefix: int, own: int, capacity: int) -> float:
    """Return the hits of an LRU cache of whole prefixes and whole other parts."""
    chosen = random.Random(7)
    held: OrderedDict[object, int] = OrderedDict()
    used = hits = 0
    for request in range(30_000):
        key = chosen.randrange(count)
        hits += request >= 10_000 and key in held
        for name, size in ((key, prefix), (("own", request), own)):
            used += 0 if name in held else size
            held[name] = size
            held.move_to_end(name)
        while used > capacity:
            used -= held.popitem(last=False)[1]
    return hits / 20_000


@pytest.mark.parametrize(
    ("count", "prefix", "own", "capacity"),
    [(100, 4000, 500, 300_000), (100, 4000, 500, 600_000), (1000, 2000, 1500, 400_000), (50, 4000, 100, 150_000)],
)
def test_hits_equal_those_of_a_simulated_cache(count: int, prefix: int, own: int, capacity: int) -> None:
    expected = simulate_hits(count, prefix, own, capacity)
    assert compute_prefix_hits(count, prefix, own, capacity) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(
    ("larger", "smaller"),
    [
        ((100, 4000, 500, 400_000), (200, 4000, 500, 400_000)),
        ((100, 4000, 500, 400_000), (100, 8000, 500, 400_000)),
        ((100, 4000, 500, 400_000), (100, 4000, 900, 400_000)),
        ((100, 4000, 500, 400_000), (100, 4000, 500, 200_000)),
    ],
)
def test_hits_fall_with_prefixes_lengths_and_a_smaller_cache(larger: tuple[int, ...], smaller: tuple[int, ...]) -> None:
    assert compute_prefix_hits(*larger) > compute_prefix_hits(*smaller) > 0


def test_cache_without_other_tokens_holds_what_fits() -> None:
    assert compute_prefix_hits(10, 1000, 0, 20_000) == 1
    assert compute_prefix_hits(10, 1000, 0, 5_000) == 0.5


def find_ttft(more: str) -> float:
    found = plan(more).models["chat"].estimate.ttft_s
    assert found is not None
    return found


def test_plan_counts_only_the_hits_of_the_prefix_cache() -> None:
    all_hit, few, many = (find_ttft(f", sharedPrefix: 0.8{more}") for more in ("", ", prefixes: 5", ", prefixes: 9999"))
    assert all_hit == pytest.approx(few, rel=0.05)
    assert few < 0.7 * many
    assert many == pytest.approx(find_ttft(""), rel=0.1)


def test_fewer_hits_need_more_replicas() -> None:
    few, many = (plan(f", sharedPrefix: 0.9, prefixes: {count}", 40).models["chat"] for count in (5, 100_000))
    assert few.replicas < many.replicas


def test_plan_states_the_hits_with_their_figures() -> None:
    reason = find_reason(plan(", sharedPrefix: 0.8, prefixes: 500", 20), "prefix_hits")
    assert reason is not None
    assert reason.chosen.endswith("%")
    assert "500 prefixes of 4,800 tokens" in reason.because
    assert reason.numbers["prefixes"] == 500
    assert find_reason(plan(", sharedPrefix: 0.8"), "prefix_hits") is None


def test_routing_by_prefix_is_not_chosen_when_each_replica_holds_all_prefixes() -> None:
    few, many = (find_reason(plan(f", sharedPrefix: 0.8, prefixes: {count}", 60), "routing") for count in (5, 500))
    assert few is not None
    assert many is not None
    assert (few.chosen, many.chosen) == ("least-loaded", "prefix-affinity")
    assert "holds nearly all prefixes" in few.because


def test_prefixes_without_their_part_of_the_prompt_are_refused() -> None:
    with pytest.raises(FleetError) as error:
        plan(", prefixes: 5")
    assert "needs the part of the prompt" in str(error.value)
    assert "sharedPrefix: 0.5" in str(error.value)


AGENTS = """
fleet: agents
pools: {{dc: {{gpu: H100-SXM-80GB, nodes: 8, gpusPerNode: 8, price: 1 USD/h}}}}
models:
  chat:
    source: Qwen/Qwen3-32B-FP8
    context: 40960
    traffic: {{requestsPerSecond: 10, inputTokens: 20000, outputTokens: 300, sharedPrefix: 0.9, prefixes: 500}}
    slo: {{ttft: 2s, tpot: 40ms}}
    {more}
"""


def plan_agents(more: str = "") -> Plan:
    return plan_fleet(load(AGENTS.format(more=more)))


def test_replicas_divide_the_prefixes_and_need_fewer_gpus() -> None:
    """56 GPUs if each replica gets all prefixes."""
    found = plan_agents()
    model, reason = found.models["chat"], find_reason(found, "prefix_hits")
    assert reason is not None
    assert (model.gpus, model.replicas, model.tensor_parallel_size, model.routing) == (32, 4, 8, "prefix-affinity")
    assert (reason.chosen, reason.numbers["undivided_hits"]) == ("77%", pytest.approx(0.21, abs=0.02))
    assert "divides them over 4 replicas, and the plan counts that" in reason.because


def test_one_replica_less_has_fewer_hits_and_is_too_few() -> None:
    fewer = plan_agents("replicas: 3\n    parallelism: {tensor: 8}")
    reason = find_reason(fewer, "prefix_hits")
    assert reason is not None
    assert reason.chosen == "60%"
    assert any("3 pinned replicas, and the planned load needs 4" in text for text in fewer.models["chat"].warnings)
