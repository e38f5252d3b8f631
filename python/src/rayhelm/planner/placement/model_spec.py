"""A model of the fleet file, resolved against the catalog, with its pinned settings."""

from dataclasses import dataclass, replace
from math import floor, hypot, inf

from rayhelm.facts.engines import EngineConstants
from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.model import Checkpoint
from rayhelm.facts.tasks import TaskKind, get_task
from rayhelm.facts.tensors import count_weights
from rayhelm.fleet.adapters import MOST_SLOTS, find_slot_rank
from rayhelm.fleet.models import ModelSpec, Replicas
from rayhelm.fleet.speed_measurements import SpeedMeasurement
from rayhelm.fleet.traffic import Traffic
from rayhelm.planner.memory.adapter_slots import AdapterSlots
from rayhelm.planner.memory.engine_settings import EngineSettings, read_settings
from rayhelm.planner.memory.kv_cache_types import KV_CACHE_DTYPES
from rayhelm.planner.memory.quantization import is_deprecated

__all__ = ["Z95", "Lengths", "LoadShare", "ResolvedModelSpec"]

Z95 = 1.645
"""Standard deviations from the mean of a normal distribution to its 95th percentile."""
_USUAL_INPUT, _USUAL_OUTPUT = 512, 128


@dataclass(frozen=True)
class Lengths:
    """Mean tokens of a request."""

    prompt: int
    answer: int
    assumed: bool
    """The fleet file has no traffic, so these are defaults."""
    shared: float
    """Part of the prompt, 0 to 1, that is cached if requests are routed by prefix."""
    deviation: float = 0.0
    """Standard deviation of the tokens of a request in the KV cache; 0 without 95th percentiles."""


@dataclass(frozen=True)
class LoadShare:
    """The replicas of a model with `pools` on one of them, and what they have of its load."""

    part: float
    """Of the requests, 0 to 1: in proportion to what the planned replicas of each pool serve."""
    replicas: int
    """For the load, without spare ones; of `planned` on all pools."""
    planned: int
    names: tuple[str, ...]
    """Names of the models of all pools, in their order."""


@dataclass(frozen=True)
class ResolvedModelSpec:
    """One model to place."""

    name: str
    written: str
    """Its name in the fleet file: another one on the further pools of a model with `pools`."""
    service: str
    model: Checkpoint
    declared: ModelSpec
    engine: EngineConstants
    has_shared_service: bool
    """Other models belong to the same service, so that they can share a GPU."""
    measured: tuple[SpeedMeasurement, ...] = ()
    """Measured speed of this model."""
    share: LoadShare | None = None
    """What this model has of the load of a model with `pools`; None for others."""
    gpus_below: float = inf
    """A replica has fewer GPUs than this: with so many, the pinned `replicas.max` has no room."""
    published: Checkpoint | None = None
    """The checkpoint that vLLM reads and quantizes to `model`; None if it loads it as it is."""

    @property
    def path(self) -> tuple[str, str]:
        """Where the fleet file has it."""
        return ("models", self.written)

    @property
    def context(self) -> int:
        return min(self.declared.context or self.model.default_context, self.model.max_context)

    @property
    def read_ratio(self) -> float:
        """Bytes that are read for each byte of weights on the GPUs."""
        return count_weights(self.published).bytes / count_weights(self.model).bytes if self.published else 1.0

    @property
    def task(self) -> TaskKind:
        return get_task(self.declared.task)

    @property
    def generates(self) -> bool:
        return self.task.generates_tokens

    @property
    def has_own_engine(self) -> bool:
        """Served by an application beside vLLM, so that vLLM's memory accounting does not apply."""
        return self.model.engine == "custom" or self.task.server == "application"

    @property
    def has_deprecated_quantization(self) -> bool:
        """Whether vLLM reads the checkpoint with `allow_deprecated_quantization` only."""
        return not self.has_own_engine and is_deprecated(self.model, self.engine)

    @property
    def separates_prefill(self) -> bool:
        """Whether prompts and answers are computed on different replicas."""
        return self.declared.parallelism is not None and self.declared.parallelism.separates_prefill

    @property
    def adapters(self) -> AdapterSlots | None:
        """Slots of the engine for the adapters of the model; None without adapters."""
        adapters = self.declared.adapters
        if not adapters:
            return None
        rank = find_slot_rank(max(adapter.rank for adapter in adapters.values()))
        return AdapterSlots(self.declared.adapter_slots or min(MOST_SLOTS, len(adapters)), rank)

    @property
    def lengths(self) -> Lengths:
        """Mean lengths of the planned load; without traffic, defaults within the context."""
        traffic = self.declared.traffic
        if traffic:
            cached = self.declared.engine.get("enable_prefix_caching") is not False
            shared = traffic.shared_prefix if cached else 0.0
            answer = traffic.output_tokens or _USUAL_OUTPUT
            return Lengths(traffic.input_tokens, answer, False, shared, _estimate_deviation(traffic))
        return Lengths(min(_USUAL_INPUT, self.context * 3 // 4), min(_USUAL_OUTPUT, self.context // 4), True, 0.0)

    @property
    def kv_cache_dtype(self) -> str:
        """Type of the KV cache as the plan counts it: 16 bits where the size of the type is not known."""
        pinned = str(self.declared.engine.get("kv_cache_dtype") or "auto")
        return pinned if pinned in KV_CACHE_DTYPES else "bfloat16"

    def pinned_int(self, key: str) -> int | None:
        value = self.declared.engine.get(key)
        return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def utilization(self, share: float, seen: float = 1.0) -> float:
        """Return gpu_memory_utilization for the fraction `share` of a GPU. `seen`: part of the memory reported by the
        driver that belongs to this engine; below 1 for time slices."""
        pinned = self.declared.engine.get("gpu_memory_utilization")
        if isinstance(pinned, (int, float)):
            return float(pinned)
        return floor(self.engine.gpu_memory_utilization * share * seen * 100) / 100

    def batched_tokens(self, gpu: GpuKind) -> int:
        """Return vLLM's default for the GPU. Models that generate no tokens need a whole input in one batch."""
        if pinned := self.pinned_int("max_num_batched_tokens"):
            return pinned
        usual = self.engine.defaults_for(gpu).max_num_batched_tokens
        return usual if self.generates else max(usual, self.context)

    def settings_on(self, gpu: GpuKind, share: float) -> EngineSettings:
        """Return what the memory of an engine with the fraction `share` of a GPU depends on."""
        return replace(
            read_settings(self.declared.engine),
            utilization=self.utilization(share, gpu.memory_seen) / gpu.memory_seen,
            context=self.context,
            tokens=self.batched_tokens(gpu),
            kv_cache_dtype=self.kv_cache_dtype,
            adapters=self.adapters,
        )

    def replicas(self, needed: int) -> int:
        """Return replicas for the planned load, within the pinned limits."""
        pinned = self.declared.replicas
        if isinstance(pinned, Replicas):
            return min(max(needed, pinned.min, 1), pinned.max)
        return needed if pinned is None else pinned


def _estimate_deviation(traffic: Traffic) -> float:
    """Return the standard deviation of prompt and half answer, independent of each other, from their percentiles."""
    prompt = ((traffic.input_tokens_p95 or traffic.input_tokens) - traffic.input_tokens) / Z95
    answer = (
        ((traffic.output_tokens_p95 or 0) - (traffic.output_tokens or 0)) / Z95 if traffic.output_tokens_p95 else 0.0
    )
    return hypot(prompt, answer / 2)
