"""Capacity of one replica, and the replicas for the planned load (Little's law), from estimated speeds.

Objectives and the load are tested at the pessimistic end of the intervals.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt
from typing import NamedTuple

from rayhelm.fleet.models import Slo
from rayhelm.planner.placement.model_spec import Z95, Lengths, ResolvedModelSpec
from rayhelm.planner.placement.model_splits import ModelSplit
from rayhelm.planner.placement.prefix_cache import estimate_prefix_hits, is_prefix_routed
from rayhelm.planner.placement.replica_speed import KnownSpeeds, LoadSpeed, ReplicaSpeed
from rayhelm.planner.placement.roles import Roles
from rayhelm.planner.placement.spare_replicas import count_spare_replicas
from rayhelm.planner.speed.assumptions import load_assumptions
from rayhelm.planner.speed.estimate import Interval

__all__ = ["ReplicaCapacity", "count_held_requests", "estimate_capacity", "limit_requests", "plan_rate"]

BATCH_WITHOUT_DECODE = 32
"""Concurrent requests per replica, for tasks that generate no tokens."""
_ROUNDS = 20
"""Rounds until the requests in flight and their latency agree."""


@dataclass(frozen=True, slots=True)
class ReplicaCapacity:
    """Capacity of one replica, and the number of replicas."""

    concurrency: int
    """Most requests in flight that the objectives, the KV cache, max_num_seqs and the network allow."""
    bound_by: str
    """Which of them limits it."""
    replicas: int
    """Planned replicas: `needed`, or what is pinned."""
    needed: int
    """For the load; 1 without traffic or without an estimate of speed."""
    ttft: Interval | None = None
    """Seconds at the planned load; without traffic, of one request at a time."""
    tpot: Interval | None = None
    """Seconds at the planned load; without traffic, at the highest concurrency."""
    basis: str = ""
    """`measured`, `interpolated` or `model`."""
    doubt: str = ""
    """Why no measurement confirms the interval; empty if rows have such loads."""
    requests_per_second: float | None = None
    """Of one replica at full concurrency; None if figures of the GPU are unknown."""
    carried: float | None = None
    """Requests per second that a replica is planned for; None if figures of the GPU are unknown."""
    spare: int = 0
    """Replicas in addition to `needed`, for `slo.capacityAvailability`."""
    quiet: int | None = None
    """Replicas for the quietest hour of `traffic.dailyProfile`; None without it."""
    load_concurrency: float | None = None
    """Requests in flight per replica at the planned load."""
    prefix_hits: float | None = None
    """Part of the requests that finds its prefix in the cache, as the plan counts it; None if the number of prefixes is
    not known."""
    undivided_hits: float | None = None
    """The same on a replica that gets all prefixes."""
    alone_ttft_s: float | None = None
    """Seconds of a request that is alone on the replica, at the pessimistic end; None if unknown."""
    alone_tpot_s: float | None = None
    """The same for each output token."""
    alone_ttft_mid_s: float | None = None
    """Seconds of a request that is alone, in the middle of the interval."""
    alone_tpot_mid_s: float | None = None
    """The same for each output token."""
    meets_slo: bool = True
    """At the planned load."""
    roles: Roles | None = None
    """Replicas of each kind, if prompts and answers are computed on different ones. `concurrency`, rates and requests
    in flight are then those of a decode replica, and `replicas` counts both kinds."""

    @property
    def tpot_s(self) -> float | None:
        return self.tpot.mid if self.tpot else None

    @property
    def ttft_s(self) -> float | None:
        return self.ttft.mid if self.ttft else None

    def misses_alone(self, objective: Slo) -> tuple[str, ...]:
        """Return the objectives that even a request alone on the replica misses: no number of replicas meets them."""
        figures = {"ttft": (objective.ttft, self.alone_ttft_s), "tpot": (objective.tpot, self.alone_tpot_s)}
        return tuple(name for name, (most, alone) in figures.items() if most and alone and alone > most)

    @property
    def overloaded(self) -> bool:
        """Pinned replicas cannot carry the planned load."""
        return self.roles.is_overloaded if self.roles else self.replicas < self.needed


def estimate_capacity(
    model_spec: ResolvedModelSpec,
    split: ModelSplit,
    share: float,
    kv_tokens: int | None,
    max_num_seqs: int,
    speeds: KnownSpeeds | None = None,
) -> ReplicaCapacity:
    """Estimate one replica. `share`: fraction of each GPU. `kv_tokens`: KV cache of the whole replica, tokens; None if
    it has none or it is unknown. `speeds`: of other models, which this one shares where they are the same."""
    if model_spec.has_own_engine:
        return _build_unestimated(model_spec, split, 1, "one request at a time")
    cache = kv_tokens / split.shape.dp if kv_tokens else None
    undivided = estimate_prefix_hits(model_spec, cache)
    known = speeds or KnownSpeeds()
    speed = known.find(model_spec, split, share, undivided)
    if not model_spec.generates:
        return _estimate_without_decode(model_spec, split, speed, max_num_seqs)
    objective = model_spec.declared.slo
    most, bound_by = max_num_seqs, "max_num_seqs"
    if kv_tokens and (held := count_held_requests(kv_tokens, model_spec.lengths)) < most:
        most, bound_by = max(1, int(held)), "KV cache"
    if not speed.is_known:
        return _build_unestimated(model_spec, split, most, bound_by)

    def size(hits: float | None) -> _Sized:
        return _size(model_spec, known.find(model_spec, split, share, hits), most, bound_by)

    alone_in_cache = _size(model_spec, speed, most, bound_by)
    needed, prefix_hits = _divide_prefixes(model_spec, cache, undivided, alone_in_cache.needed, size)
    sized = alone_in_cache if prefix_hits == undivided else size(prefix_hits)
    speed, carried = sized.speed, sized.carried
    most, bound_by = sized.concurrency, sized.bound_by
    quiet = _count_quiet(model_spec, alone_in_cache.carried)
    alone, full = speed.at(1), speed.at(most)
    spare = _count_spare(model_spec, split, needed)
    in_flight = _estimate_in_flight(model_spec, speed, model_spec.replicas(needed), most)
    at_load = speed.at(in_flight or most)
    ttft = at_load.ttft if in_flight else alone.ttft
    return ReplicaCapacity(
        concurrency=most,
        bound_by=bound_by,
        replicas=model_spec.replicas(needed + spare),
        needed=needed,
        spare=spare,
        quiet=None if quiet is None else min(quiet, needed),  # few replicas divide the prefixes less
        ttft=ttft,
        tpot=at_load.tpot,
        basis=at_load.basis,
        doubt=full.doubt,
        requests_per_second=full.requests_per_second.mid,
        carried=carried,
        load_concurrency=in_flight,
        prefix_hits=prefix_hits,
        undivided_hits=undivided,
        alone_ttft_s=alone.ttft_high_s,
        alone_tpot_s=alone.tpot_high_s,
        alone_ttft_mid_s=alone.ttft_s,
        alone_tpot_mid_s=alone.tpot_s,
        meets_slo=_meets(at_load, objective, has_load=bool(in_flight)),
    )


class _Sized(NamedTuple):
    """A replica with some hits of its prefix cache, and the replicas for the load."""

    speed: ReplicaSpeed
    concurrency: int
    bound_by: str
    carried: float
    needed: int


def _size(model_spec: ResolvedModelSpec, speed: ReplicaSpeed, most: int, bound_by: str) -> _Sized:
    most, bound_by = limit_requests(speed, model_spec.declared.slo, most, bound_by)
    carried = plan_rate(speed.at(most).requests_per_second)
    return _Sized(speed, most, bound_by, carried, _count_needed(model_spec, carried))


def _divide_prefixes(
    model_spec: ResolvedModelSpec,
    cache: float | None,
    undivided: float | None,
    most: int,
    size: Callable[[float | None], _Sized],
) -> tuple[int, float | None]:
    """Return the fewest replicas that carry the load with the hits that they have together, and these hits: more
    replicas divide the prefixes, so that each finds more of its own in the cache. `most`: replicas that carry the load
    if each gets all prefixes.

    Replicas on several pools, which are sized one after the other, count as getting all prefixes."""
    if (
        undivided is None
        or model_spec.share
        or model_spec.declared.pools
        or not is_prefix_routed(model_spec, undivided)
    ):
        return most, undivided
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        is_enough = size(estimate_prefix_hits(model_spec, cache, middle)).needed <= middle
        low, high = (low, middle) if is_enough else (middle + 1, high)
    return low, estimate_prefix_hits(model_spec, cache, model_spec.replicas(low))


def _build_unestimated(
    model_spec: ResolvedModelSpec, split: ModelSplit, concurrency: int, bound_by: str
) -> ReplicaCapacity:
    """Return the capacity without an estimate of speed: one replica, and the spare ones."""
    spare = _count_spare(model_spec, split, 1)
    return ReplicaCapacity(concurrency, bound_by, model_spec.replicas(1 + spare), 1, spare=spare)


def limit_requests(speed: ReplicaSpeed, objective: Slo, most: int, bound_by: str) -> tuple[int, str]:
    """Return the most requests in flight with which everything holds, and what limits them."""
    uses: dict[str, Callable[[LoadSpeed], float]] = {"network": lambda found: found.link_use}
    if tpot := objective.tpot:
        uses["tpot objective"] = lambda found: found.tpot_high_s / tpot
    if ttft := objective.ttft:
        uses["ttft objective"] = lambda found: found.ttft_high_s / ttft
    for name, use in uses.items():
        if use(speed.at(most)) > 1:
            most, bound_by = _find_most(speed, use, most), name
    return most, bound_by


def _find_most(speed: ReplicaSpeed, use: Callable[[LoadSpeed], float], too_many: int) -> int:
    """Return the most requests in flight that use at most all of what is allowed, at least one. `too_many` use more.

    The use grows nearly linearly, so that a line finds them in two or three steps; every third one halves the range."""
    low, high = 1, too_many
    least, largest = use(speed.at(low)), use(speed.at(high))
    step = 0
    while high - low > 1 and least <= 1:
        step += 1
        part = (1 - least) / (largest - least) if step % 3 else 0.5
        middle = min(max(low + int(part * (high - low)), low + 1), high - 1)
        found = use(speed.at(middle))
        if found <= 1:
            low, least = middle, found
            if high - low > 1:
                following = use(speed.at(low + 1))
                if following > 1:
                    return low
                low, least = low + 1, following
        else:
            high, largest = middle, found
    return low


def _meets(found: LoadSpeed, objective: Slo, has_load: bool) -> bool:
    """Return whether the objectives hold at the planned load; without traffic only a request alone was compared."""
    is_first_late = has_load and objective.ttft and found.ttft_high_s > objective.ttft
    return not is_first_late and not (has_load and objective.tpot and found.tpot_high_s > objective.tpot)


def plan_rate(rate: Interval) -> float:
    """Return the requests/s that a replica is planned for: a part of its capacity, and at most what it can carry at the
    pessimistic end."""
    return min(rate.mid * load_assumptions().replica_utilization, rate.low)


def _count_needed(model_spec: ResolvedModelSpec, carried: float) -> int:
    """Return the replicas for the load, each planned for `carried` requests/s."""
    traffic = model_spec.declared.traffic
    return ceil(traffic.peak_rate / carried) if traffic else 1


def _count_quiet(model_spec: ResolvedModelSpec, carried: float) -> int | None:
    """Return the replicas for the quietest hour, at least one; None without a profile of the day."""
    rate = model_spec.declared.traffic.quiet_rate if model_spec.declared.traffic else None
    return None if rate is None else max(1, ceil(rate / carried))


def _count_spare(model_spec: ResolvedModelSpec, split: ModelSplit, needed: int) -> int:
    return count_spare_replicas(needed, split.shape.gpu_count, model_spec.declared.slo.capacity_availability)


def count_held_requests(kv_tokens: int, lengths: Lengths) -> float:
    """Return the requests whose tokens the KV cache holds with 95 % probability: n x mean + z sqrt(n) x deviation =
    tokens. A request has its prompt and, on average, half of its answer there."""
    mean, spread = lengths.prompt + lengths.answer / 2, Z95 * lengths.deviation
    return ((sqrt(spread**2 + 4 * mean * kv_tokens) - spread) / (2 * mean)) ** 2


def _estimate_in_flight(model_spec: ResolvedModelSpec, speed: ReplicaSpeed, replicas: int, most: int) -> float | None:
    """Return the requests in flight per replica: arrival rate times latency, which grows with them, up to `most`."""
    if not model_spec.declared.traffic:
        return None
    each, in_flight = model_spec.declared.traffic.peak_rate / replicas, 1.0
    answer = model_spec.lengths.answer
    for _ in range(_ROUNDS):
        ttft, tpot = speed.list_times_s(max(in_flight, 1.0))
        wanted = min(most, each * (ttft + (answer - 1) * tpot))
        if abs(wanted - in_flight) < 1e-3 * in_flight:
            return wanted
        in_flight = wanted
    return in_flight


def _estimate_without_decode(
    model_spec: ResolvedModelSpec, split: ModelSplit, speed: ReplicaSpeed, max_num_seqs: int
) -> ReplicaCapacity:
    """Return the capacity for a task with one forward pass per request, which is limited by compute."""
    batch = min(BATCH_WITHOUT_DECODE, max_num_seqs)
    is_limited = max_num_seqs < BATCH_WITHOUT_DECODE
    if not speed.is_known:
        return _build_unestimated(model_spec, split, batch, "max_num_seqs" if is_limited else "batch")
    alone, seconds = speed.pass_s(1), speed.pass_s(batch)
    traffic = model_spec.declared.traffic
    carried = min(load_assumptions().replica_utilization / seconds.mid, 1 / seconds.high)
    needed = _count_needed(model_spec, carried)
    spare = _count_spare(model_spec, split, needed)
    replicas = model_spec.replicas(needed + spare)
    return ReplicaCapacity(
        concurrency=batch,
        bound_by="max_num_seqs" if is_limited else "compute",
        replicas=replicas,
        needed=needed,
        spare=spare,
        quiet=_count_quiet(model_spec, carried),
        ttft=alone,
        basis="model",
        doubt="no task without output tokens was measured",
        requests_per_second=1 / seconds.mid,
        carried=carried,
        load_concurrency=traffic.peak_rate / model_spec.replicas(needed) * seconds.mid if traffic else None,
        alone_ttft_s=alone.high,
        alone_ttft_mid_s=alone.mid,
    )
