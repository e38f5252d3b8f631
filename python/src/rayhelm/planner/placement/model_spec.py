"""What is asked for: a model of the fleet, resolved against the catalog, and what its pins say."""

from dataclasses import dataclass
from math import floor

from rayhelm.catalog.engines import EngineConstants
from rayhelm.catalog.gpu import GpuKind
from rayhelm.catalog.model import Checkpoint
from rayhelm.catalog.tasks import TaskKind, get_task
from rayhelm.spec.models import ModelSpec, Replicas

__all__ = ["Lengths", "ResolvedModelSpec"]

_USUAL_INPUT, _USUAL_OUTPUT = 512, 128


@dataclass(frozen=True)
class Lengths:
    """Mean tokens of a request."""

    prompt: int
    answer: int
    assumed: bool
    """The fleet says nothing of them."""
    shared: float
    """Part of the prompt that is cached already, where requests are routed by it."""


@dataclass(frozen=True)
class ResolvedModelSpec:
    """One model to be placed."""

    name: str
    service: str
    model: Checkpoint
    declared: ModelSpec
    engine: EngineConstants
    has_shared_service: bool
    """Other models live in the same service, so that they can share a card."""

    @property
    def context(self) -> int:
        return min(self.declared.context or self.model.max_context, self.model.max_context)

    @property
    def task(self) -> TaskKind:
        return get_task(self.declared.task)

    @property
    def generates(self) -> bool:
        return self.task.generates_tokens

    @property
    def has_own_engine(self) -> bool:
        """Served by an application of its own, so that vLLM's accounting says nothing."""
        return self.model.engine == "custom" or self.task.server == "application"

    @property
    def lengths(self) -> Lengths:
        """Of the planned load; usual ones, within the context, where there is none."""
        traffic = self.declared.traffic
        if traffic:
            cached = self.declared.engine.get("enable_prefix_caching") is not False
            shared = traffic.shared_prefix if cached else 0.0
            return Lengths(traffic.input_tokens, traffic.output_tokens or _USUAL_OUTPUT, False, shared)
        return Lengths(min(_USUAL_INPUT, self.context * 3 // 4), min(_USUAL_OUTPUT, self.context // 4), True, 0.0)

    def pinned_int(self, key: str) -> int | None:
        value = self.declared.engine.get(key)
        return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def utilization(self, share: float, seen: float = 1.0) -> float:
        """gpu_memory_utilization: vLLM's own part of the part of the card that the model may use. `seen`: what of the
        memory that the engine sees is its own to share."""
        pinned = self.declared.engine.get("gpu_memory_utilization")
        if isinstance(pinned, (int, float)):
            return float(pinned)
        return floor(self.engine.gpu_memory_utilization * share * seen * 100) / 100

    def batched_tokens(self, gpu: GpuKind) -> int:
        """vLLM's default for the card; models that do not generate take a whole input in one batch."""
        if pinned := self.pinned_int("max_num_batched_tokens"):
            return pinned
        usual = self.engine.defaults_for(gpu).max_num_batched_tokens
        return usual if self.generates else max(usual, self.context)

    def replicas(self, needed: int) -> int:
        """Replicas at the planned load, within what is pinned."""
        pinned = self.declared.replicas
        if isinstance(pinned, Replicas):
            return min(max(needed, pinned.min, 1), pinned.max)
        return needed if pinned is None else pinned
