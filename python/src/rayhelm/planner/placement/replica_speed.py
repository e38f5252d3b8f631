"""Speed of one replica of a model at the lengths of its load, with intervals."""

from collections import OrderedDict
from collections.abc import Hashable
from functools import cached_property
from math import exp
from typing import NamedTuple

from rayhelm.planner.memory.kv_cache import count_token_bytes
from rayhelm.planner.placement.measured_speed import list_own_rows
from rayhelm.planner.placement.model_spec import Lengths, ResolvedModelSpec
from rayhelm.planner.placement.model_splits import ModelSplit
from rayhelm.planner.speed.assumptions import load_assumptions
from rayhelm.planner.speed.coefficients import BandChoice, find_interval, load_coefficients
from rayhelm.planner.speed.estimate import Interval, describe_doubt, find_band, find_high, spread
from rayhelm.planner.speed.model import Speed, SpeedModel, list_pass_terms
from rayhelm.planner.speed.neighbors import Correction, correct, find_rows
from rayhelm.planner.speed.replica import Load, Replica, StageLink
from rayhelm.planner.speed.rows import MeasuredRow, describe_unmeasured
from rayhelm.planner.speed.terms import list_missing_figures
from rayhelm.planner.speed.unmeasured import adjust, describe_unlike, has_wide_experts

__all__ = ["DecodeSpeed", "KnownSpeeds", "LoadSpeed", "ReplicaSpeed"]

_UNCORRECTED = Correction()
_MOST_KNOWN = 2_000
"""Speeds that a plan keeps: models with the same checkpoint are placed one after the other."""


class LoadSpeed(NamedTuple):
    """Speed with some requests in flight. The intervals are computed when they are read: a search reads one of them."""

    ttft_s: float
    tpot_s: float
    requests_per_s: float
    band: BandChoice
    """The intervals that apply."""
    basis: str
    link_use: float
    """Part of what the link between the stages may carry."""
    doubt: str
    """Why the interval is a wide one; empty if rows have such loads."""

    @property
    def ttft_high_s(self) -> float:
        """Seconds at the pessimistic end."""
        return find_high(self.ttft_s, find_interval(self.band, "ttft_bands"))

    @property
    def tpot_high_s(self) -> float:
        """Seconds at the pessimistic end."""
        return find_high(self.tpot_s, find_interval(self.band, "tpot_bands"))

    @property
    def ttft(self) -> Interval:
        """Seconds."""
        return spread(self.ttft_s, find_interval(self.band, "ttft_bands"))

    @property
    def tpot(self) -> Interval:
        """Seconds."""
        return spread(self.tpot_s, find_interval(self.band, "tpot_bands"))

    @property
    def requests_per_second(self) -> Interval:
        return spread(self.requests_per_s, find_interval(self.band, "throughput_bands"))


class ReplicaSpeed:
    """One split of a model at the lengths of its load."""

    def __init__(
        self,
        model_spec: ResolvedModelSpec,
        split: ModelSplit,
        share: float,
        prefix_hits: float | None = None,
        replica: Replica | None = None,
    ) -> None:
        """`prefix_hits`: part of the requests that finds its prefix in the cache; None: all of them. `replica`: that of
        the same split under another load."""
        self._model_spec, self._split, self._share = model_spec, split, share
        self._shared_replica = replica
        lengths = model_spec.lengths
        self._cached = lengths.prompt * lengths.shared * (1.0 if prefix_hits is None else prefix_hits)
        self._found: dict[float, LoadSpeed] = {}

    @property
    def is_known(self) -> bool:
        """Whether all figures of the GPUs are known."""
        return not any(list_missing_figures(gpu) for gpu in self._split.gpus)

    def at(self, concurrency: float) -> LoadSpeed:
        """Return the speed with so many requests in flight, at least one."""
        found = self._found.get(concurrency)
        if found is None:
            found = self._compute(concurrency)
            if isinstance(concurrency, int):
                self._found[concurrency] = found
        return found

    def list_times_s(self, concurrency: float) -> tuple[float, float]:
        """Return the seconds to the first token and per output token with so many requests in flight."""
        ttft, tpot, _, _ = self._correct_times(concurrency)
        return ttft, tpot

    def pass_s(self, batch: int) -> Interval:
        """Return the seconds of one request of a task without output tokens, `batch` of which share the overhead of a
        forward pass as far as its tokens allow."""
        prompt = self._model_spec.lengths.prompt
        together = max(1.0, min(batch, self._model_spec.batched_tokens(self._split.gpu) / prompt))
        work, overhead = list_pass_terms(self.replica, Load(prompt, 1, 1))
        return spread(work + overhead / together, load_coefficients().ttft_bands.other_gpu)

    @property
    def prompt_s(self) -> tuple[float, float]:
        """Seconds that the GPUs compute one prompt without what is cached, and the overhead of its forward pass."""
        return list_pass_terms(self.replica, Load(self._lengths.prompt, 1, 1, self._cached))

    def _compute(self, concurrency: float) -> LoadSpeed:
        ttft, tpot, speed, correction = self._correct_times(concurrency)
        seconds = ttft + max(self._lengths.answer - 1, 0) * tpot
        doubt = describe_doubt(speed, correction, self._unmeasured)
        return LoadSpeed(
            ttft_s=ttft,
            tpot_s=tpot,
            requests_per_s=concurrency / seconds,
            band=find_band(self.replica, speed, correction, doubt, elsewhere=self._is_pessimistic),
            basis=correction.basis,
            link_use=speed.link_use / load_assumptions().link_use_limit,
            doubt=doubt or ("" if correction.confidence == 1 else self._unlike),
        )

    def _correct_times(self, concurrency: float) -> tuple[float, float, Speed, Correction]:
        speed = self._model.at(concurrency)
        correction = self._correct(concurrency) if self._has_rows else self._uncorrected
        return speed.ttft_s * exp(correction.ttft), speed.tpot_s * exp(correction.tpot), speed, correction

    @cached_property
    def _unlike(self) -> str:
        """In what the replica differs from all rows, where they do not correct the estimate in full."""
        unlike = describe_unlike(self.replica, _UNCORRECTED)
        if self._is_pessimistic or not has_wide_experts(self.replica):
            return unlike
        factor = load_coefficients().wide_experts_factor
        return (
            f"{unlike}. Other sources measured such models {factor:.1f} times slower: `slo.unmeasured: pessimistic`"
            " plans with that"
        )

    def _correct(self, concurrency: float) -> Correction:
        lengths = self._lengths
        load = Load(lengths.prompt, lengths.answer, concurrency, self._cached)
        found = correct(self.replica, load, self._own_rows, self._kv_cache_dtype)
        if found.confidence < 1:
            found = found.over(correct(self.replica, load, self._rows, self._kv_cache_dtype))
        return adjust(found, self.replica) if self._is_pessimistic else found

    @cached_property
    def _has_rows(self) -> bool:
        return bool(self._own_rows or self._rows)

    @cached_property
    def _uncorrected(self) -> Correction:
        """The correction without rows."""
        return adjust(_UNCORRECTED, self.replica) if self._is_pessimistic else _UNCORRECTED

    @cached_property
    def replica(self) -> Replica:
        model_spec, split = self._model_spec, self._split
        return self._shared_replica or Replica(
            model=model_spec.model,
            gpus=split.gpus,
            shape=split.shape,
            kv_bytes_per_token=count_token_bytes(
                model_spec.model, split.shape, self._kv_cache_dtype, model_spec.engine
            ),
            max_num_seqs=1_000_000,  # the planner limits the requests in flight itself
            batched_tokens=model_spec.batched_tokens(split.gpu),
            link=self._find_link(),
            network_hops=split.nodes - 1,
            share=self._share,
        )

    @cached_property
    def _model(self) -> SpeedModel:
        lengths = self._lengths
        load = Load(lengths.prompt, lengths.answer, 1, self._cached)
        return SpeedModel(self.replica, load, load_coefficients())

    @cached_property
    def _unmeasured(self) -> str:
        """In what the lengths differ from those of all rows."""
        return describe_unmeasured(Load(self._lengths.prompt, self._lengths.answer, 1, self._cached), self._own_rows)

    @cached_property
    def _lengths(self) -> Lengths:
        return self._model_spec.lengths

    @cached_property
    def _own_rows(self) -> tuple[MeasuredRow, ...]:
        """Rows that were measured on this fleet. They go before published ones."""
        return list_own_rows(self._model_spec, self.replica)

    @cached_property
    def _rows(self) -> tuple[MeasuredRow, ...]:
        return find_rows(self.replica)

    @property
    def _is_pessimistic(self) -> bool:
        return self._model_spec.declared.slo.unmeasured == "pessimistic"

    @property
    def _kv_cache_dtype(self) -> str:
        return self._model_spec.kv_cache_dtype

    def _find_link(self) -> StageLink | None:
        """Return the network between the hosts of a replica. One without a known rate delays nothing."""
        network, assumed = self._split.inventory.network, load_assumptions()
        if self._split.nodes == 1 or not network.gb_per_s:
            return None
        latency = network.latency_s
        if latency is None:
            latency = assumed.network_latency_s["rdma" if network.rdma else "ethernet"]
        return StageLink(network.gb_per_s, latency)


class DecodeSpeed(ReplicaSpeed):
    """Speed of a replica that gets the KV cache of each prompt from another one, and computes answers alone.

    No such replica was measured, so measured rows do not correct it."""

    def __init__(self, model_spec: ResolvedModelSpec, split: ModelSplit) -> None:
        super().__init__(model_spec, split, 1.0)
        self._cached = float(model_spec.lengths.prompt)

    @cached_property
    def _own_rows(self) -> tuple[MeasuredRow, ...]:
        return ()

    @cached_property
    def _rows(self) -> tuple[MeasuredRow, ...]:
        return ()


class KnownSpeeds:
    """The speeds of one plan. Many models of a fleet have the same checkpoint and split, and some the same lengths."""

    def __init__(self) -> None:
        self._found: OrderedDict[Hashable, ReplicaSpeed] = OrderedDict()
        self._replicas: dict[Hashable, Replica] = {}

    def find(
        self, model_spec: ResolvedModelSpec, split: ModelSplit, share: float, prefix_hits: float | None
    ) -> ReplicaSpeed:
        """Return the speed of a split, as `ReplicaSpeed`. A model with measurements of its own shares it with none."""
        if model_spec.measured or not model_spec.generates:
            return ReplicaSpeed(model_spec, split, share, prefix_hits)
        kind = (
            (id(model_spec.model), model_spec.kv_cache_dtype, share),
            model_spec.batched_tokens(split.gpu),
            tuple(id(gpu) for gpu in split.gpus),
            (split.shape, split.nodes),
            split.inventory.network,
        )
        key = (kind, model_spec.lengths, prefix_hits, model_spec.declared.slo.unmeasured)
        if found := self._found.get(key):
            self._found.move_to_end(key)
            return found
        found = self._found[key] = ReplicaSpeed(model_spec, split, share, prefix_hits, self._replicas.get(kind))
        if found.is_known:
            self._replicas.setdefault(kind, found.replica)
        if len(self._found) > _MOST_KNOWN:
            self._found.popitem(last=False)
        return found
