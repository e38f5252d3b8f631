"""How much one replica carries, and how many the planned load needs (Little's law). Pure arithmetic over estimates."""

from dataclasses import dataclass
from math import ceil

from rayhelm.catalog.engines import Engine
from rayhelm.catalog.model import Model
from rayhelm.planner.kv_cache import kv_cache
from rayhelm.planner.layout import partition_of
from rayhelm.planner.performance import decode_step_s, link_gb_per_s, prefill_s, roofline
from rayhelm.planner.splits import Split
from rayhelm.spec.models import ModelSpec

__all__ = ["Capacity", "capacity"]

_USUAL_INPUT, _USUAL_OUTPUT = 512, 128
"""Lengths that targets are set for when a model has no traffic; said in the plan."""
GENERATES = ("chat", "transcribe")
BATCH_WITHOUT_DECODE = 32
"""Requests that a replica of a task without decoding takes at once."""


@dataclass(frozen=True)
class Capacity:
    """One replica under the planned load."""

    concurrency: int
    """Most requests in flight that the objective, the cache and max_num_seqs allow."""
    bound_by: str
    """Which of them it was."""
    ttft_s: float | None
    tpot_s: float | None
    """At that concurrency."""
    requests_per_second: float | None
    """At that concurrency; None when the card's figures are unknown."""
    replicas: int
    meets_tpot: bool
    meets_ttft: bool
    load_concurrency: float | None
    """Requests in flight per replica at the planned load."""

    @property
    def meets_slo(self) -> bool:
        return self.meets_tpot and self.meets_ttft


def capacity(
    model: Model,
    split: Split,
    spec: ModelSpec,
    engine: Engine,
    kv_tokens: int | None,
    max_num_seqs: int,
    kv_dtype: str,
    share: float,
) -> Capacity:
    """Estimate one replica. `kv_tokens`: cache of the whole replica; `share`: part of each card that it holds."""
    if spec.task not in GENERATES:
        return _without_decode(model, split, spec, share)
    prompt = spec.traffic.input_tokens if spec.traffic else _USUAL_INPUT
    answer = (spec.traffic.output_tokens if spec.traffic else None) or _USUAL_OUTPUT
    speed = _Speed(model, split, spec, engine, kv_dtype, prompt, answer, share)
    by_cache = max(1, int((kv_tokens or 0) / (prompt + answer / 2)))
    most, bound_by = min((max_num_seqs, "max_num_seqs"), (by_cache, "KV cache"))
    first = speed.tpot(1)
    if first is None:
        return Capacity(most, bound_by, None, None, None, 1, True, True, None)
    if spec.slo.tpot and speed.tpot(most) > spec.slo.tpot:  # type: ignore[operator]
        most, bound_by = _most_within(speed, spec.slo.tpot, most), "tpot objective"
    ttft, tpot = speed.ttft(), speed.tpot(most) or 0.0
    rate = most / (ttft + answer * tpot)
    replicas, in_flight = _replicas(speed, spec, rate, answer, ttft)
    return Capacity(
        concurrency=most,
        bound_by=bound_by,
        ttft_s=ttft,
        tpot_s=tpot,
        requests_per_second=rate,
        replicas=replicas,
        meets_tpot=not spec.slo.tpot or first <= spec.slo.tpot,
        meets_ttft=not spec.slo.ttft or ttft <= spec.slo.ttft,
        load_concurrency=in_flight,
    )


class _Speed:
    """Decode and prefill of one split at given lengths."""

    def __init__(
        self,
        model: Model,
        split: Split,
        spec: ModelSpec,
        engine: Engine,
        kv_dtype: str,
        prompt: int,
        answer: int,
        share: float,
    ) -> None:
        self.model, self.split, self.share = model, split, share
        self.prompt, self.context = prompt, prompt + answer / 2
        new = prompt * (1 - (spec.traffic.shared_prefix if spec.traffic else 0.0))
        self.new, self.reuse = new, new / answer
        cache = kv_cache(model, split.tp, partition_of(model, split.pp, split.partition), kv_dtype, engine)
        self.kv_bytes = sum(cache.token_bytes(stage) for stage in range(split.pp)) if cache else 0

    def tpot(self, concurrency: float) -> float | None:
        """Seconds per output token with `concurrency` requests in flight."""
        step = decode_step_s(
            self.model, self.split.gpus, self.split.tp, concurrency, self.context, self.kv_bytes, self.reuse
        )
        return None if step is None else step / self.share

    def ttft(self) -> float:
        """Seconds to the first token of a request that need not wait."""
        across = self.split.nodes > 1
        link = self.split.pool.link.gb_per_s if across else link_gb_per_s(self.split.gpu, 2)
        seconds = prefill_s(self.model, self.split.gpus, self.split.tp, self.new, link) or 0.0
        return seconds / self.share + (self.tpot(1) or 0.0)


def _most_within(speed: _Speed, tpot_s: float, most: int) -> int:
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if (speed.tpot(middle) or 0) <= tpot_s else (low, middle - 1)
    return low


def _replicas(speed: _Speed, spec: ModelSpec, rate: float, answer: int, ttft: float) -> tuple[int, float | None]:
    """Replicas for the load, and what each then has in flight: arrival rate times time in the system."""
    if not spec.traffic:
        return 1, None
    replicas = ceil(spec.traffic.requests_per_second / (rate * roofline().replica_utilisation))
    each, in_flight = spec.traffic.requests_per_second / replicas, 1.0
    for _ in range(20):
        in_flight = each * (ttft + answer * (speed.tpot(max(in_flight, 1)) or 0))
    return replicas, in_flight


def _without_decode(model: Model, split: Split, spec: ModelSpec, share: float) -> Capacity:
    """One pass over the input, compute-bound: requests queue for the card's FLOP/s."""
    prompt = spec.traffic.input_tokens if spec.traffic else _USUAL_INPUT
    alone = prefill_s(model, split.gpus, split.tp, prompt, None)
    seconds = None if alone is None else alone / share
    if seconds is None or not spec.traffic:
        return Capacity(BATCH_WITHOUT_DECODE, "batch", seconds, None, None, 1, True, True, None)
    rate = 1 / seconds
    replicas = ceil(spec.traffic.requests_per_second / (rate * roofline().replica_utilisation))
    return Capacity(
        concurrency=BATCH_WITHOUT_DECODE,
        bound_by="compute",
        ttft_s=seconds,
        tpot_s=None,
        requests_per_second=rate,
        replicas=replicas,
        meets_tpot=True,
        meets_ttft=not spec.slo.ttft or seconds <= spec.slo.ttft,
        load_concurrency=spec.traffic.requests_per_second / replicas * seconds,
    )
