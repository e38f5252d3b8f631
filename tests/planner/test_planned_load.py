"""Bursts, the profile of a day, percentiles of lengths and an availability target change replicas or headroom."""

import random
from itertools import product
from math import exp, lgamma, log, prod

import pytest

from rayhelm.errors import FleetError, Problem
from rayhelm.fleet.traffic import Burst
from rayhelm.live.traffic.fleet_text import format_models
from rayhelm.live.traffic.records import LogLine
from rayhelm.live.traffic.summary import TrafficLog, summarize
from rayhelm.planner.placement.capacity import count_held_requests
from rayhelm.planner.placement.model_spec import Lengths
from rayhelm.planner.placement.spare_replicas import compute_availability, count_spare_replicas, load_failure_rates
from rayhelm.planner.plan import ModelPlan
from shared.apply_fix import check_fixes
from shared.fleets import load, one, plan, refused

POOL = "{gpu: L4-24GB, nodes: 100}"
PROFILE = [0.1] * 8 + [1] * 16


def model(more: str = "", top: str = "") -> str:
    load = f"traffic: {{requestsPerSecond: 3, inputTokens: 800, outputTokens: 200{more}}}"
    return f"{{source: Qwen/Qwen3-8B, context: 8192, {load}{top}}}"


def planned(more: str = "", top: str = "") -> ModelPlan:
    return one(POOL, model(more, top))


def find_quantile(mean: float, dispersion: float, part: float) -> int:
    """Return the exact quantile of Poisson (dispersion 1) or negative binomial requests."""
    total, count = 0.0, -1
    while total < part:
        count += 1
        if dispersion == 1:
            total += exp(count * log(mean) - mean - lgamma(count + 1))
        else:
            size, chance = mean / (dispersion - 1), 1 / dispersion
            ways = lgamma(count + size) - lgamma(size) - lgamma(count + 1)
            total += exp(ways + size * log(chance) + count * log(1 - chance))
    return count


@pytest.mark.parametrize(("mean", "dispersion", "percentile"), product((30, 180, 2000), (1, 4, 15), (90, 99, 99.9)))
def test_peak_rate_is_the_quantile_of_the_requests(mean: float, dispersion: float, percentile: float) -> None:
    found = Burst(dispersion=dispersion, window="60s", percentile=percentile).find_peak(mean / 60) * 60
    exact = find_quantile(mean, dispersion, percentile / 100)
    assert 0.97 * exact - 1 <= found <= 1.1 * exact


def test_peak_rate_grows_with_bursts_and_never_falls_below_the_mean() -> None:
    rates = [Burst(dispersion=each).find_peak(3) for each in (0, 0.5, 1, 10, 10_000)]
    assert rates == sorted(rates)
    assert rates[0] == 3
    assert Burst(dispersion=5, percentile=50).find_peak(1e-6) >= 1e-6


def test_bursts_need_more_replicas_and_the_plan_says_why() -> None:
    found = planned(", burst: {dispersion: 40}")
    assert found.replicas > planned().replicas
    (reason,) = [each for each in found.reasons if each.decision == "peak_rate"]
    assert "99 % of the windows of 60 s" in reason.because


def test_even_arrivals_need_the_replicas_of_the_mean() -> None:
    assert planned(", burst: {dispersion: 0}").replicas == planned().replicas


def test_quietest_hour_decides_the_replicas_that_always_run() -> None:
    found, without = planned(f", dailyProfile: {PROFILE}"), planned()
    assert (found.replicas, found.max_replicas) == (without.replicas, without.max_replicas)
    half = planned(f", dailyProfile: {[0.5] * 8 + [1] * 16}")
    assert without.min_replicas == 1 <= found.min_replicas < half.min_replicas < half.max_replicas


def test_hour_without_requests_keeps_one_replica() -> None:
    assert planned(f", dailyProfile: {[0] * 8 + [1] * 16}").min_replicas == 1


def test_uneven_lengths_leave_room_in_the_cache() -> None:
    even, uneven = planned(), planned(", inputTokensP95: 4000, outputTokensP95: 900")
    assert uneven.target_ongoing_requests < even.target_ongoing_requests
    assert uneven.replicas >= even.replicas


def test_held_requests_fill_the_cache_with_their_deviation() -> None:
    lengths = Lengths(800, 200, False, 0.0, deviation=500)
    count = count_held_requests(30_000, lengths)
    assert count * 900 + 1.645 * 500 * count**0.5 == pytest.approx(30_000)
    assert count_held_requests(30_000, Lengths(800, 200, False, 0.0)) == pytest.approx(30_000 / 900)


def count_by_enumeration(needed: int, gpus: int, target: float) -> int:
    up, spare = compute_availability(gpus), 0
    while True:
        states = product((True, False), repeat=needed + spare)
        if sum(prod(up if each else 1 - up for each in state) for state in states if sum(state) >= needed) >= target:
            return spare
        spare += 1


@pytest.mark.parametrize(("needed", "gpus", "target"), product((1, 2, 5), (1, 8, 64), (0.5, 0.99, 0.999, 0.999999)))
def test_spare_replicas_are_the_fewest_that_meet_the_target(needed: int, gpus: int, target: float) -> None:
    assert count_spare_replicas(needed, gpus, target) == count_by_enumeration(needed, gpus, target)


def test_spare_replicas_of_a_large_fleet_are_found() -> None:
    assert 300 < count_spare_replicas(10_000, 64, 0.999) < 500


def test_failure_rates_have_their_sources() -> None:
    rates = load_failure_rates()
    assert rates.failures_per_gpu_hour == pytest.approx(419 / (16384 * 54 * 24), rel=0.01)
    assert "Llama 3" in rates.failures_source
    assert rates.repair_source.startswith("assumed")


def test_availability_target_adds_spare_replicas_that_always_run() -> None:
    found, without = planned(top=", slo: {capacityAvailability: 0.9999}"), planned()
    (reason,) = [each for each in found.reasons if each.decision == "spare_replicas"]
    spare = int(reason.chosen)
    assert spare >= 1
    assert (found.replicas, found.min_replicas) == (without.replicas + spare, 1 + spare)
    assert found.estimate.tpot_s == without.estimate.tpot_s  # also while the spare ones are down


@pytest.mark.parametrize(
    ("source", "task"),
    [("BAAI/bge-m3", "embed"), ("openai/whisper-large-v3", "transcribe"), ("microsoft/speecht5_tts", "speak")],
)
def test_availability_target_holds_for_tasks_without_an_estimate_too(source: str, task: str) -> None:
    found = one(POOL, f"{{source: {source}, task: {task}, slo: {{capacityAvailability: 0.9999}}}}")
    assert found.replicas == found.min_replicas == 2


def test_pinned_replicas_without_spare_ones_are_warned_of() -> None:
    pins = f", replicas: {planned().replicas}, slo: {{capacityAvailability: 0.999}}"
    assert any("`slo.capacityAvailability` needs" in text for text in planned(top=pins).warnings)


def test_load_that_fits_is_offered_with_bursts_and_spare_replicas() -> None:
    more = ", burst: {dispersion: 40}"
    problem = refused("{gpu: L4-24GB, nodes: 4}", model(more, ", slo: {capacityAvailability: 0.99}"))
    assert any("requestsPerSecond" in fix.path for fix in problem.alternatives)


def refuse(text: str) -> Problem:
    whole = f"fleet: one\npools: {{pool: {POOL}}}\nmodels:\n  model: {text}\n"
    with pytest.raises(FleetError) as caught:
        load(whole)
    (problem,) = caught.value.problems
    assert problem.line == 4
    check_fixes(whole, [problem], load)
    return problem


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (", burst: {dispersion: -1}", "-1"),
        (", burst: {dispersion: 4, percentile: 100}", "100"),
        (", burst: {dispersion: 4, window: 60}", "has no unit"),
        (", burst: {}", "dispersion"),
        (", burst: 4", "4"),
        (", dailyProfile: [1, 0.5]", "has 2 hours, and a day has 24"),
        (f", dailyProfile: {[1] * 25}", "has 25 hours, and a day has 24"),
        (f", dailyProfile: {[0] * 24}", "has no request in any hour"),
        (f", dailyProfile: {[2, *[1] * 23]}", "2"),
        (", inputTokensP95: 700", "`inputTokensP95` is 700, below the mean of 800 tokens"),
        (", outputTokensP95: 0", "0"),
        (", inputTokensP95: 8000, outputTokensP95: 500", "are 8500 tokens together, and `context` is 8192"),
    ],
)
def test_wrong_load_is_refused_with_its_line_and_a_fix(more: str, message: str) -> None:
    assert message in refuse(model(more)).message


@pytest.mark.parametrize("target", ["1", "0.2", "nines"])
def test_wrong_availability_target_is_refused(target: str) -> None:
    assert target in refuse(model(top=f", slo: {{capacityAvailability: {target}}}")).message


def make_log(days: int, burst: int) -> TrafficLog:
    """Return requests of a model with quiet nights, in groups of `burst`; the same on each run."""
    draw, log, second = random.Random(7), TrafficLog(), 0.0
    while second < days * 86_400:
        rate = 0.1 if (second // 3600) % 24 < 8 else 1.0
        second += draw.expovariate(rate / burst)
        log.add(
            LogLine("chat", 1_793_577_600 + second, f"{second}-{each}", None, draw.choice((200, 2000)), 0, 100)
            for each in range(burst)
        )
    return log


def test_traffic_writes_bursts_profile_and_percentiles_that_the_plan_reads() -> None:
    found = summarize(make_log(2, burst=5), 60, 99)
    assert found["chat"].hour_dispersion == pytest.approx(5, rel=0.1)
    assert found["chat"].dispersion > 10  # with the nights
    text = format_models(found).replace("  chat:", "  chat:\n    source: Qwen/Qwen3-8B\n    context: 8192")
    traffic = load(f"fleet: a\npools: {{p: {POOL}}}\n{text}").fleet.models["chat"].traffic
    assert traffic
    assert traffic.burst
    assert traffic.burst.dispersion == pytest.approx(5, rel=0.1)
    assert traffic.requests_per_second == pytest.approx(1, rel=0.15)
    assert (traffic.input_tokens_p95, traffic.output_tokens_p95) == (2000, 100)
    assert traffic.daily_profile[3] == pytest.approx(0.1, abs=0.04)
    assert max(traffic.daily_profile) <= 1
    assert traffic.peak_rate >= found["chat"].peak_rate
    assert plan(f"fleet: a\npools: {{p: {POOL}}}\n{text}").models["chat"].replicas >= 1


def test_traffic_of_a_short_log_has_the_measured_peak_and_no_profile() -> None:
    log = TrafficLog()
    log.add(LogLine("chat", 1_793_577_600 + each, str(each), None, 100, 0, 10) for each in range(0, 7200, 2))
    text = format_models(summarize(log, 60, 99))
    assert "requestsPerSecond: 0.5\n" in text
    assert "burst" not in text
    assert "dailyProfile" not in text
