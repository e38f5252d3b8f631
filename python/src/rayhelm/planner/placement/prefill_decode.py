"""Replicas of each kind for the planned load, if prompts and answers are computed on different replicas.

A prefill replica is a queue with one server: prompts wait for each other. A decode replica works on many answers at a
time, and no prompt interrupts it. Objectives and the load are tested at the pessimistic end of the intervals.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, floor, inf

from rayhelm.planner.placement.capacity import ReplicaCapacity, count_held_requests, limit_requests, plan_rate
from rayhelm.planner.placement.kv_transfer import measure_transfer
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.placement.model_splits import ModelSplit
from rayhelm.planner.placement.prefix_cache import estimate_prefix_hits
from rayhelm.planner.placement.replica_speed import DecodeSpeed, ReplicaSpeed
from rayhelm.planner.placement.roles import RoleCapacity, Roles
from rayhelm.planner.placement.spare_replicas import count_spare_replicas
from rayhelm.planner.speed.assumptions import load_assumptions
from rayhelm.planner.speed.coefficients import load_coefficients
from rayhelm.planner.speed.estimate import Interval, spread

__all__ = ["estimate_prefill_decode"]

_MOST_REPLICAS = 1000


def estimate_prefill_decode(
    model_spec: ResolvedModelSpec, split: ModelSplit, kv_tokens: int, max_num_seqs: int
) -> ReplicaCapacity:
    """Estimate both kinds of replicas of a split that `find_transfer_error` accepts. `kv_tokens`: KV cache of one
    replica, tokens."""
    objective, traffic = model_spec.declared.slo, model_spec.declared.traffic
    prefix_hits = estimate_prefix_hits(model_spec, kv_tokens)
    prompts, answers = ReplicaSpeed(model_spec, split, 1.0, prefix_hits), DecodeSpeed(model_spec, split)
    transfer = measure_transfer(model_spec, split, ReplicaSpeed(model_spec, split, 1.0))
    assert transfer is not None
    most, bound_by = _limit_by_cache(model_spec, kv_tokens, max_num_seqs)
    most, bound_by = limit_requests(answers, objective.model_copy(update={"ttft": None}), most, bound_by)
    full = answers.at(most)
    carried = plan_rate(full.requests_per_second)
    step_s = answers.at(1).tpot_s
    first = _FirstToken(*prompts.prompt_s, transfer.seconds + step_s)
    rate, quiet = (traffic.peak_rate, traffic.quiet_rate) if traffic else (0.0, None)
    pin = model_spec.declared.parallelism
    decode = _count(rate, quiet, lambda load: ceil(load / carried), pin.decode if pin else None, model_spec, split)
    prefill = _count(
        rate,
        quiet,
        lambda load: first.count_replicas(load, objective.ttft),
        pin.prefill if pin else None,
        model_spec,
        split,
    )
    at_load = answers.at(_find_batch(model_spec, answers, decode.replicas, most)) if traffic else full
    ttft = first.at(rate / prefill.replicas)
    served = min(full.requests_per_second.mid, prefill.replicas / first.work_s / decode.replicas)
    answer_s = max(model_spec.lengths.answer - 1, 0) * at_load.tpot_s
    roles = Roles(
        prefill=prefill.describe(first.work_s * split.shape.gpu_count, _find_prefill_target()),
        decode=decode.describe(
            split.shape.gpu_count / full.requests_per_second.mid, _find_decode_target(most, carried, ttft)
        ),
        transfer=transfer,
    )
    return ReplicaCapacity(
        concurrency=most,
        bound_by=bound_by,
        replicas=prefill.replicas + decode.replicas,
        needed=prefill.needed + decode.needed,
        spare=prefill.spare + decode.spare,
        quiet=None,
        ttft=ttft if ttft.mid < inf else None,
        tpot=at_load.tpot,
        basis="model",
        requests_per_second=served,
        carried=carried,
        load_concurrency=min(float(most), rate / decode.replicas * (ttft.mid + answer_s)) if traffic else None,
        prefix_hits=prefix_hits,
        undivided_hits=prefix_hits,
        alone_ttft_s=first.at(0.0).high,
        alone_tpot_s=answers.at(1).tpot_high_s,
        alone_ttft_mid_s=first.at(0.0).mid,
        alone_tpot_mid_s=answers.at(1).tpot_s,
        meets_slo=not traffic or (_meets(ttft.high, objective.ttft) and _meets(at_load.tpot_high_s, objective.tpot)),
        roles=roles,
    )


@dataclass(frozen=True)
class _FirstToken:
    """Time to first token: the wait for a prefill replica, the prompt, the transfer, and a decode step."""

    work_s: float
    overhead_s: float
    after_s: float
    """Transfer and decode step."""

    def at(self, rate: float) -> Interval:
        """Return seconds with `rate` prompts per second on each replica. The wait is that of a queue with random
        arrivals and a fixed time of service (M/D/1)."""
        busy = rate * self.work_s
        wait = self.work_s * busy / (2 * (1 - busy)) if busy < 1 else inf
        return spread(wait + self.work_s + self.overhead_s + self.after_s, load_coefficients().ttft_bands.other_gpu)

    def count_replicas(self, rate: float, objective: float | None) -> int:
        """Return the fewest replicas that are busy for at most the planned part of the time, and meet the objective."""
        least = max(1, ceil(rate * self.work_s / load_assumptions().replica_utilization))
        for replicas in range(least, least + _MOST_REPLICAS):
            if _meets(self.at(rate / replicas).high, objective):
                return replicas
        return least


@dataclass(frozen=True)
class _Count:
    replicas: int
    needed: int
    spare: int
    fewest: int

    def describe(self, gpu_s: float, in_flight: int) -> RoleCapacity:
        return RoleCapacity(self.replicas, self.needed, self.spare, self.fewest, gpu_s, in_flight)


def _count(
    rate: float,
    quiet: float | None,
    count: Callable[[float], int],
    pinned: int | None,
    model_spec: ResolvedModelSpec,
    split: ModelSplit,
) -> _Count:
    """Return the replicas of one kind. Both kinds have to be up, so each has the square root of the target."""
    target = model_spec.declared.slo.capacity_availability
    needed = max(1, count(rate))
    spare = count_spare_replicas(needed, split.shape.gpu_count, target**0.5 if target else None)
    if pinned:
        return _Count(pinned, needed, spare, pinned)
    fewest = max(1, count(quiet)) if quiet else 1
    return _Count(needed + spare, needed, spare, min(fewest + spare, needed + spare))


def _limit_by_cache(model_spec: ResolvedModelSpec, kv_tokens: int, max_num_seqs: int) -> tuple[int, str]:
    held = count_held_requests(kv_tokens, model_spec.lengths)
    return (max(1, int(held)), "KV cache") if held < max_num_seqs else (max_num_seqs, "max_num_seqs")


def _find_batch(model_spec: ResolvedModelSpec, answers: DecodeSpeed, replicas: int, most: int) -> float:
    """Return the answers that a replica works on at the planned load: arrival rate times their duration."""
    traffic = model_spec.declared.traffic
    assert traffic is not None
    *_, batch = _iterate_batch(traffic.peak_rate / replicas, model_spec.lengths.answer, answers, most)
    return batch


def _iterate_batch(rate: float, answer: int, answers: DecodeSpeed, most: int) -> Iterator[float]:
    batch = 1.0
    for _ in range(20):
        batch = min(float(most), max(1.0, rate * answer * answers.at(batch).tpot_s))
        yield batch


def _find_prefill_target() -> int:
    """Return the prompts in flight per replica at the planned use: those that are computed, and those that wait."""
    busy = load_assumptions().replica_utilization
    return ceil(busy + busy**2 / (2 * (1 - busy)))


def _find_decode_target(most: int, carried: float, ttft: Interval) -> int:
    """Return the requests in flight per replica at the planned use. The decode replica has a request from its arrival
    on, so those whose prompt is still computed count too."""
    waiting = carried * ttft.mid if ttft.mid < inf else 0.0
    return max(1, floor(most * load_assumptions().replica_utilization + waiting))


def _meets(seconds: float, objective: float | None) -> bool:
    return objective is None or seconds <= objective
