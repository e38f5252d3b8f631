"""Capacity of one replica, and the replicas for the planned load (Little's law), from estimated speeds.

Objectives and the load are tested at the pessimistic end of the intervals.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt

from rayhelm.fleet.models import Slo
from rayhelm.planner.placement.model_spec import Z95, Lengths, ResolvedModelSpec
from rayhelm.planner.placement.model_splits import ModelSplit
from rayhelm.planner.placement.prefix_cache import estimate_prefix_hits
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


@dataclass(frozen=True)
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
    """Part of the requests that finds its prefix in the cache; None if the number of prefixes is not known."""
    alone_ttft_s: float | None = None
    """Seconds of a request that is alone on the replica, at the pessimistic end; None if unknown."""
    alone_tpot_s: float | None = None
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
    prefix_hits = estimate_prefix_hits(model_spec, kv_tokens / split.shape.dp if kv_tokens else None)
    speed = (speeds or KnownSpeeds()).find(model_spec, split, share, prefix_hits)
    if not model_spec.generates:
        return _estimate_without_decode(model_spec, split, speed, max_num_seqs)
    objective = model_spec.declared.slo
    most, bound_by = max_num_seqs, "max_num_seqs"
    if kv_tokens and (held := count_held_requests(kv_tokens, model_spec.lengths)) < most:
        most, bound_by = max(1, int(held)), "KV cache"
    if not speed.is_known:
        return _build_unestimated(model_spec, split, most, bound_by)
    most, bound_by = limit_requests(speed, objective, most, bound_by)
    alone, full = speed.at(1), speed.at(most)
    carried = plan_rate(full.requests_per_second)
    needed = _count_needed(model_spec, carried)
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
        quiet=_count_quiet(model_spec, carried),
        ttft=ttft,
        tpot=at_load.tpot,
        basis=at_load.basis,
        doubt=full.doubt,
        requests_per_second=full.requests_per_second.mid,
        carried=carried,
        load_concurrency=in_flight,
        prefix_hits=prefix_hits,
        alone_ttft_s=alone.ttft_high_s,
        alone_tpot_s=alone.tpot_high_s,
        meets_slo=_meets(at_load, objective, has_load=bool(in_flight)),
    )


def _build_unestimated(
    model_spec: ResolvedModelSpec, split: ModelSplit, concurrency: int, bound_by: str
) -> ReplicaCapacity:
    """Return the capacity without an estimate of speed: one replica, and the spare ones."""
    spare = _count_spare(model_spec, split, 1)
    return ReplicaCapacity(concurrency, bound_by, model_spec.replicas(1 + spare), 1, spare=spare)


def limit_requests(speed: ReplicaSpeed, objective: Slo, most: int, bound_by: str) -> tuple[int, str]:
    """Return the most requests in flight with which everything holds, and what limits them."""
    tests: dict[str, Callable[[LoadSpeed], bool]] = {"network": lambda found: not found.is_link_overfull}
    if objective.tpot:
        tests["tpot objective"] = lambda found: found.tpot_high_s <= (objective.tpot or 0)
    if objective.ttft:
        tests["ttft objective"] = lambda found: found.ttft_high_s <= (objective.ttft or 0)
    for name, holds in tests.items():
        if not holds(speed.at(most)):
            most, bound_by = _find_most(speed, holds, most), name
    return most, bound_by


def _find_most(speed: ReplicaSpeed, holds: Callable[[LoadSpeed], bool], most: int) -> int:
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(speed.at(middle)) else (low, middle - 1)
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
        found = speed.at(max(in_flight, 1.0))
        wanted = min(most, each * (found.ttft_s + (answer - 1) * found.tpot_s))
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
    )
