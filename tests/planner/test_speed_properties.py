"""Properties of the speed model on random shapes and loads, from chats to long prompts with one output token."""

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from rayhelm.errors import FleetError
from rayhelm.facts import load_catalog
from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.model import Checkpoint, Quantization
from rayhelm.planner.shape import ReplicaShape
from rayhelm.planner.speed.build import build_replica
from rayhelm.planner.speed.estimate import estimate_speed
from rayhelm.planner.speed.model import Speed, compute_speed
from rayhelm.planner.speed.replica import Load, Replica
from rayhelm.planner.speed.rows import load_rows, replica_of_row

FP8 = Quantization(method="fp8", bits=8)
Case = tuple[Replica, Load]


@cache
def draw_cases(count: int = 80) -> tuple[Case, ...]:
    """Return replicas that fit, and loads of 32 to 32,768 input tokens and 1 to 4,096 output tokens."""
    return tuple(_draw(count))


def _draw(count: int) -> Iterator[Case]:
    known, choose = load_catalog(), random.Random(19)
    models = [model for model in known.models() if model.causal]
    gpus = [gpu for gpu in known.gpus() if gpu.engine != "none" and gpu.memory_bandwidth_gb_per_s and gpu.bf16_tflops]
    while count:
        load = Load(*(int(2 ** choose.uniform(*ends)) for ends in ((5, 15), (0, 12), (0, 9))))
        stages = (choose.choice(gpus),) * choose.choice((1, 1, 1, 2))
        replica = _build(choose.choice(models), stages, choose.choice((1, 2, 4, 8)), load)
        if replica:
            yield replica, load
            count -= 1


def _build(model: Checkpoint, gpus: tuple[GpuKind, ...], tp: int, load: Load) -> Replica | None:
    """Return the replica; None if it does not fit."""
    try:
        context = int(2 * load.input_tokens + load.output_tokens)
        replica, _ = build_replica(model, gpus, ReplicaShape(tp, len(gpus)), context=context)
    except FleetError:
        return None
    return replica if replica.kv_tokens else None


@cache
def draw_measured_cases(loads_of_each: int = 8) -> tuple[Case, ...]:
    """Return the replicas of the measured rows, with loads near to and far from theirs. Not those on the edge of loads
    that no row has, where the interval widens."""
    choose = random.Random(5)
    replicas = {(row.model, row.weights, row.gpu, row.shape): replica_of_row(row) for row in load_rows()}
    drawn = [
        (replica, Load(*(2 ** choose.uniform(*ends) for ends in ((6, 12), (6.7, 11), (0, 7)))))
        for replica in replicas.values()
        for _ in range(loads_of_each)
    ]
    return tuple(case for case in drawn if not estimate_speed(*case).notes)


def describe(replica: Replica, load: Load) -> str:
    return f"{replica.model.id} on {replica.gpus[0].id}, {replica.shape}, {load}"


def get_rate(speed: Speed, load: Load) -> float:
    """Return requests per second."""
    return load.concurrency / (speed.ttft_s + (load.output_tokens - 1) * speed.tpot_s)


def test_longer_prompts_never_shorten_the_time_to_first_token() -> None:
    for replica, load in draw_cases():
        longer = replace(load, input_tokens=2 * load.input_tokens)
        assert compute_speed(replica, longer).ttft_s >= compute_speed(replica, load).ttft_s, describe(replica, load)


def test_more_requests_never_shorten_a_time() -> None:
    for replica, load in draw_cases():
        fewer, more = (compute_speed(replica, replace(load, concurrency=n * load.concurrency)) for n in (1, 2))
        assert more.tpot_s >= fewer.tpot_s, describe(replica, load)
        assert more.ttft_s >= fewer.ttft_s, describe(replica, load)


@pytest.mark.parametrize("figure", ["concurrency", "input_tokens"])
def test_nearer_measured_rows_never_shorten_a_time_much_where_the_load_grows(figure: str) -> None:
    """Measured rows correct the estimates of loads near theirs. With 20 % more load, the correction of the estimate may
    grow and its interval may narrow, but neither at once."""
    for replica, load in draw_measured_cases():
        heavier = replace(load, **{figure: 1.2 * getattr(load, figure)})
        before, after = estimate_speed(replica, load), estimate_speed(replica, heavier)
        for light, heavy in ((before.tpot_s, after.tpot_s), (before.ttft_s, after.ttft_s)):
            assert heavy.mid >= 0.93 * light.mid, describe(replica, load)
            assert heavy.high >= 0.85 * light.high, describe(replica, load)


def test_more_requests_never_lower_the_rate_by_more_than_two_percent() -> None:
    for replica, load in draw_cases():
        twice = replace(load, concurrency=2 * load.concurrency)
        fewer, more = (get_rate(compute_speed(replica, each), each) for each in (load, twice))
        assert more >= 0.98 * fewer, describe(replica, load)


def test_twice_the_ranks_never_lower_the_rate() -> None:
    for replica, load in draw_cases():
        if replica.model.experts is None:
            one, two = (
                compute_speed(replace(replica, shape=replace(replica.shape, dp=ranks)), load) for ranks in (1, 2)
            )
            assert get_rate(two, load) >= get_rate(one, load), describe(replica, load)


@pytest.mark.parametrize("figure", ["memory_bandwidth_gb_per_s", "bf16_tflops"])
def test_faster_gpu_never_lengthens_a_time(figure: str) -> None:
    for replica, load in draw_cases():
        gpu = replica.gpus[0]
        better = gpu.model_copy(update={figure: 1.5 * getattr(gpu, figure)})
        slow, fast = (
            compute_speed(replica, load),
            compute_speed(replace(replica, gpus=(better,) * replica.shape.pp), load),
        )
        assert fast.tpot_s <= slow.tpot_s, describe(replica, load)
        assert fast.ttft_s <= slow.ttft_s, describe(replica, load)


def test_fp8_weights_are_not_slower_where_native_and_not_much_slower_elsewhere() -> None:
    """GPUs without FP8 convert the weights, which costs compute and saves bandwidth. Experts lose more: the rows with
    converted experts are of 4 bits."""
    compared = 0
    for replica, load in draw_cases():
        model = replica.model.model_copy(update={"quantization": FP8})
        smaller = None if replica.model.quantization else _build(model, replica.gpus, replica.shape.tp, load)
        if not smaller:
            continue
        before, after = (compute_speed(each, load) for each in (replica, smaller))
        if before.running == after.running:
            limit = 1.0 if replica.gpus[0].fp8 else 1.8 if replica.model.experts else 1.25
            assert after.tpot_s <= limit * before.tpot_s, describe(replica, load)
            assert after.ttft_s <= limit * before.ttft_s, describe(replica, load)
            compared += 1
    assert compared > 15


def test_each_estimate_lies_in_its_interval() -> None:
    for replica, load in draw_cases():
        found = estimate_speed(replica, load)
        for interval in (found.ttft_s, found.tpot_s, found.output_tokens_per_second):
            assert 0 < interval.low <= interval.mid <= interval.high, describe(replica, load)


def test_no_token_takes_less_than_reading_the_weights() -> None:
    for replica, load in draw_cases(400):
        work, experts, gpu = replica.work, replica.model.experts, replica.gpus[0]
        read = work.dense_bytes + (work.expert_bytes * experts.active / experts.count if experts else 0)
        bandwidth = (gpu.memory_bandwidth_gb_per_s or 0) * 1e9 * replica.shape.tp
        assert estimate_speed(replica, load).tpot_s.low >= 0.999 * read / bandwidth, describe(replica, load)


def test_replica_computes_no_more_prompt_tokens_than_its_peak() -> None:
    for replica, load in draw_cases():
        busy = replace(load, concurrency=512, output_tokens=1)
        work, gpu = replica.work, replica.gpus[0]
        flops = max(filter(None, (gpu.bf16_tflops, gpu.fp8_tflops, gpu.fp4_tflops))) * 1e12 * replica.shape.gpu_count
        parameters = work.dense_parameters + work.expert_parameters
        needed = 2 * parameters * busy.input_tokens * get_rate(compute_speed(replica, busy), busy)
        assert needed < flops, describe(replica, load)


def test_printed_times_grow_with_the_requests_in_flight() -> None:
    """Also where rows correct them: a slow row does not make fewer requests slower than more."""
    for replica, load in draw_measured_cases(1)[::2]:
        found = [
            estimate_speed(replica, replace(load, concurrency=load.concurrency * more)) for more in (1, 1.1, 1.5, 3)
        ]
        for figure in ("tpot_s", "ttft_s"):
            mids = [getattr(each, figure).mid for each in found]
            assert mids == sorted(mids), f"{figure} {mids}: {describe(replica, load)}"


def test_printed_times_are_no_longer_on_a_better_gpu() -> None:
    h100, h200 = (load_catalog().gpu(name) for name in ("H100-SXM-80GB", "H200-SXM-141GB"))
    for replica, load in draw_measured_cases(1):
        if replica.gpus == (h100,):
            slow, fast = estimate_speed(replica, load), estimate_speed(replace(replica, gpus=(h200,)), load)
            if fast.basis != "measured":
                assert fast.ttft_s.mid <= slow.ttft_s.mid, describe(replica, load)
                assert fast.tpot_s.mid <= slow.tpot_s.mid, describe(replica, load)
