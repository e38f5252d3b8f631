"""Capacity of one replica, and the replicas for the planned load (Little's law), from estimated speeds."""

from dataclasses import dataclass
from math import ceil

from rayhelm.planner.memory.kv_cache import lay_out_kv_cache
from rayhelm.planner.memory.parallelism import find_partition
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.placement.model_splits import ModelSplit
from rayhelm.planner.placement.performance import (
    estimate_decode_step_s,
    estimate_first_token_s,
    estimate_prefill_s,
    find_link_gb_per_s,
    load_roofline,
)
from rayhelm.spec.models import Slo

__all__ = ["ReplicaCapacity", "estimate_capacity"]

BATCH_WITHOUT_DECODE = 32
"""Concurrent requests per replica, for tasks that generate no tokens."""


@dataclass(frozen=True)
class ReplicaCapacity:
    """Capacity of one replica, and the number of replicas."""

    concurrency: int
    """Most requests in flight that `slo.tpot`, the KV cache and max_num_seqs allow."""
    bound_by: str
    """Which of them limits it."""
    replicas: int
    """Planned replicas: `needed`, or what is pinned."""
    needed: int
    """For the load; 1 without traffic or without an estimate of speed."""
    ttft_s: float | None = None
    """Seconds at the planned load; without traffic, of one request at a time."""
    tpot_s: float | None = None
    """Seconds at the planned load; without traffic, at the highest concurrency."""
    requests_per_second: float | None = None
    """Of one replica at full concurrency; None if figures of the GPU are unknown."""
    load_concurrency: float | None = None
    """Requests in flight per replica at the planned load."""
    alone_ttft_s: float | None = None
    """Seconds of a request that is alone on the replica; None if unknown."""
    alone_tpot_s: float | None = None
    """The same for each output token."""
    meets_slo: bool = True
    """At the planned load."""

    def misses_alone(self, objective: Slo) -> tuple[str, ...]:
        """Return the objectives that even a request alone on the replica misses: no number of replicas meets them."""
        figures = {"ttft": (objective.ttft, self.alone_ttft_s), "tpot": (objective.tpot, self.alone_tpot_s)}
        return tuple(name for name, (most, alone) in figures.items() if most and alone and alone > most)

    @property
    def overloaded(self) -> bool:
        """Pinned replicas cannot carry the planned load."""
        return self.replicas < self.needed


def estimate_capacity(
    model_spec: ResolvedModelSpec, split: ModelSplit, share: float, kv_tokens: int | None, max_num_seqs: int
) -> ReplicaCapacity:
    """Estimate one replica. `share`: fraction of each GPU. `kv_tokens`: KV cache of the whole replica, tokens; None if
    it has none or it is unknown."""
    if model_spec.has_own_engine:
        return ReplicaCapacity(1, "one request at a time", model_spec.replicas(1), 1)
    if not model_spec.generates:
        return _without_decode(model_spec, split, share)
    lengths, speed = model_spec.lengths, _Speed(model_spec, split, share)
    most, bound_by = max_num_seqs, "max_num_seqs"
    if kv_tokens and kv_tokens / (lengths.prompt + lengths.answer / 2) < most:
        most, bound_by = max(1, int(kv_tokens / (lengths.prompt + lengths.answer / 2))), "KV cache"
    if (alone := speed.tpot(1)) is None:
        return ReplicaCapacity(most, bound_by, model_spec.replicas(1), 1)
    objective = model_spec.declared.slo
    if objective.tpot and speed.seconds(most) > objective.tpot:
        most, bound_by = _find_most_within(speed, objective.tpot, most), "tpot objective"
    rate = most / (speed.ttft(most) + lengths.answer * speed.seconds(most))
    needed = _count_needed(model_spec, rate)
    in_flight = _estimate_in_flight(model_spec, speed, model_spec.replicas(needed), most)
    ttft = speed.ttft(in_flight or 1)
    return ReplicaCapacity(
        concurrency=most,
        bound_by=bound_by,
        replicas=model_spec.replicas(needed),
        needed=needed,
        ttft_s=ttft,
        tpot_s=speed.seconds(in_flight or most),
        requests_per_second=rate,
        load_concurrency=in_flight,
        alone_ttft_s=speed.ttft(1),
        alone_tpot_s=alone,
        meets_slo=not objective.ttft or ttft <= objective.ttft,
    )


class _Speed:
    """Decode and prefill of one split at the lengths of the load."""

    def __init__(self, model_spec: ResolvedModelSpec, split: ModelSplit, share: float) -> None:
        lengths = model_spec.lengths
        self.model, self.split, self.share = model_spec.model, split, share
        self.context = lengths.prompt + lengths.answer / 2
        self.new = lengths.prompt * (1 - lengths.shared)
        self.reuse = self.new / lengths.answer
        dtype = str(model_spec.declared.engine.get("kv_cache_dtype") or "auto")
        layers = find_partition(model_spec.model, split.pp, split.partition)
        cache = lay_out_kv_cache(model_spec.model, split.tp, layers, dtype, model_spec.engine)
        self.kv_bytes = sum(cache.token_bytes(stage) for stage in range(split.pp)) if cache else 0

    def tpot(self, concurrency: float) -> float | None:
        """Return seconds per output token with `concurrency` requests in flight; None if figures of the GPU are
        unknown."""
        step = estimate_decode_step_s(
            self.model,
            self.split.gpus,
            self.split.tp,
            concurrency,
            self.context,
            self.kv_bytes,
            self.reuse,
            self._estimate_hop_s(concurrency),
        )
        return None if step is None else step / self.share

    def seconds(self, concurrency: float) -> float:
        """Return the same, for a GPU with known figures."""
        return self.tpot(max(concurrency, 1)) or 0.0

    def ttft(self, concurrency: float) -> float:
        """Return seconds to the first token with `concurrency` requests in flight."""
        network = self.split.inventory.network
        has_network = self.split.nodes > 1
        link = network.gb_per_s if has_network else find_link_gb_per_s(self.split.gpu, 2)
        latency = network.latency_s if has_network else None
        computed = estimate_prefill_s(self.model, self.split.gpus, self.split.tp, self.new, link, latency) or 0.0
        return estimate_first_token_s(computed / self.share, self.seconds(concurrency), concurrency)

    def _estimate_hop_s(self, concurrency: float) -> float | None:
        """Return seconds that the activations of one step need to the next host; None on a network that was not
        measured."""
        network = self.split.inventory.network
        if self.split.nodes == 1 or network.latency_s is None or not network.gb_per_s:
            return None
        sent = concurrency / self.split.pp * self.model.hidden * 2
        return network.latency_s + sent / (network.gb_per_s * 1e9)


def _find_most_within(speed: _Speed, tpot_s: float, most: int) -> int:
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if speed.seconds(middle) <= tpot_s else (low, middle - 1)
    return low


def _count_needed(model_spec: ResolvedModelSpec, rate: float) -> int:
    """Return replicas for the load, each planned to a part of its capacity."""
    traffic = model_spec.declared.traffic
    return ceil(traffic.requests_per_second / (rate * load_roofline().replica_utilization)) if traffic else 1


def _estimate_in_flight(model_spec: ResolvedModelSpec, speed: _Speed, replicas: int, most: int) -> float | None:
    """Return the requests in flight per replica: arrival rate times latency, which grows with them, up to `most`."""
    if not model_spec.declared.traffic:
        return None
    each, in_flight = model_spec.declared.traffic.requests_per_second / replicas, 1.0
    for _ in range(20):
        in_flight = min(most, each * (speed.ttft(in_flight) + model_spec.lengths.answer * speed.seconds(in_flight)))
    return in_flight


def _without_decode(model_spec: ResolvedModelSpec, split: ModelSplit, share: float) -> ReplicaCapacity:
    """Return the capacity for a task with one forward pass per request, which is limited by compute."""
    alone = estimate_prefill_s(model_spec.model, split.gpus, split.tp, model_spec.lengths.prompt, None)
    if alone is None:
        return ReplicaCapacity(BATCH_WITHOUT_DECODE, "batch", model_spec.replicas(1), 1)
    seconds = alone / share
    needed = _count_needed(model_spec, 1 / seconds)
    traffic = model_spec.declared.traffic
    return ReplicaCapacity(
        concurrency=BATCH_WITHOUT_DECODE,
        bound_by="compute",
        replicas=model_spec.replicas(needed),
        needed=needed,
        ttft_s=seconds,
        requests_per_second=1 / seconds,
        load_concurrency=traffic.requests_per_second / model_spec.replicas(needed) * seconds if traffic else None,
        alone_ttft_s=seconds,
    )
