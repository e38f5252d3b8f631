"""The accounting of one model under one split: each stage's memory, and what the pool of blocks holds. No words yet."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import hypot

from rayhelm.catalog.engines import EngineConstants
from rayhelm.catalog.gpu import GpuKind
from rayhelm.catalog.model import Checkpoint
from rayhelm.planner.memory.gpu_memory import (
    GIB,
    Term,
    count_stage_weights,
    estimate_activation,
    estimate_cuda_graphs,
    estimate_non_torch,
)
from rayhelm.planner.memory.kv_cache import KvCache, lay_out_kv_cache
from rayhelm.planner.memory.parallelism import find_partition

__all__ = ["EngineConfig", "MemoryResult", "StageMemory", "evaluate"]

_WEIGHTS_ERROR = 0.01
"""Published start-up logs lie within 0.9 % of the arithmetic: rotary tables, alignment, repacking."""


@dataclass(frozen=True)
class EngineConfig:
    """A model, the cards, and every setting that memory depends on."""

    model: Checkpoint
    gpus: tuple[GpuKind, ...]
    """One per stage."""
    tp: int
    share: float
    """Part of each card's memory that the engine may use."""
    context: int
    seqs: int
    tokens: int
    kv_cache_dtype: str
    eager: bool
    engine: EngineConstants
    partition: tuple[int, ...] | None = None

    @property
    def pp(self) -> int:
        return len(self.gpus)

    @cached_property
    def layers(self) -> tuple[int, ...]:
        return find_partition(self.model, self.pp, self.partition)

    @cached_property
    def cache(self) -> KvCache | None:
        return lay_out_kv_cache(self.model, self.tp, self.layers, self.kv_cache_dtype, self.engine)

    @property
    def in_flight(self) -> int:
        return self.tokens * (self.engine.batches_in_flight + self.pp - 1)

    def blocks_of_a_request(self) -> int:
        if self.cache is None:
            return 0
        return self.cache.request_blocks(self.context, in_flight=self.in_flight, batch=self.tokens)


@dataclass(frozen=True)
class StageMemory:
    """One card of one stage, bytes."""

    gpu: GpuKind
    layers: int
    budget: float
    weights: float
    activation: float
    non_torch: float
    cuda_graphs: float
    error: float
    """Half width of the band of `cache`."""
    block: int
    """Bytes of one block of the pool on this card; 0 without a cache."""

    @property
    def cache(self) -> float:
        """What is left for the cache; negative when not even the rest fits."""
        return self.budget - self.weights - self.activation - self.non_torch - self.cuda_graphs

    @property
    def blocks(self) -> int:
        return max(0, int(self.cache // self.block)) if self.block else 0


@dataclass(frozen=True)
class MemoryResult:
    """What the pool holds when all stages take the block count of the weakest."""

    config: EngineConfig
    stages: tuple[StageMemory, ...]
    request_blocks: int
    """Blocks of one request of the asked context."""

    @cached_property
    def weakest(self) -> StageMemory:
        return min(self.stages, key=lambda stage: (stage.blocks, stage.cache))

    @property
    def blocks(self) -> int:
        return self.weakest.blocks

    @property
    def fits(self) -> bool:
        """vLLM starts: something is left for the cache, and one request of the context fits beside the null block."""
        return all(self._holds(stage) for stage in self.stages)

    @property
    def fits_within_error(self) -> bool:
        """It still fits where every uncertain term is as bad as its error allows."""
        return all(self._holds(stage, stage.error) for stage in self.stages)

    @property
    def concurrency(self) -> float:
        """Requests of full context at a time."""
        if self.config.cache is None:
            return float(self.config.seqs) if self.fits else 0.0
        return self.blocks / self.request_blocks

    @property
    def tokens(self) -> int:
        """As vLLM logs it: concurrency x context."""
        return int(self.concurrency * self.config.context) if self.config.cache else 0

    @property
    def largest_context(self) -> int:
        """Longest context with which vLLM would start; 0 when none."""
        config = self.config
        if config.cache is None:
            return config.model.max_context if self.fits else 0
        usable = self.blocks - config.engine.null_block
        return config.cache.largest_context(
            max(0, usable), config.model.max_context, in_flight=config.in_flight, batch=config.tokens
        )

    def _holds(self, stage: StageMemory, less: float = 0.0) -> bool:
        cache = stage.cache - less
        return cache > 0 and cache >= (self.request_blocks + self.config.engine.null_block) * stage.block


def evaluate(config: EngineConfig) -> MemoryResult:
    """Account for every stage of the asked split, in the given order."""
    return MemoryResult(config, tuple(_stages(config)), config.blocks_of_a_request())


def _stages(config: EngineConfig) -> Iterator[StageMemory]:
    held = count_stage_weights(config.model, config.tp, config.layers, config.engine)
    for stage, gpu in enumerate(config.gpus):
        work, outside, graphs = _terms(config, stage)
        yield StageMemory(
            gpu=gpu,
            layers=config.layers[stage],
            budget=(gpu.usable_gib or 0.0) * GIB * config.share,
            weights=held[stage],
            activation=work.bytes,
            non_torch=outside.bytes,
            cuda_graphs=graphs.bytes,
            error=hypot(held[stage] * _WEIGHTS_ERROR, *_errors((work, outside, graphs))),
            block=config.cache.block_bytes(stage) if config.cache else 0,
        )


def _terms(config: EngineConfig, stage: int) -> tuple[Term, Term, Term]:
    """Activations, non-torch memory and CUDA graphs, as far as vLLM runs the model."""
    if config.model.engine == "custom":
        return Term(0.0), Term(0.0), Term(0.0)
    last = stage == config.pp - 1
    return (
        estimate_activation(
            config.model, config.tp, seqs=config.seqs, tokens=config.tokens, last_stage=last, engine=config.engine
        ),
        estimate_non_torch(config.tp, config.pp, eager=config.eager, engine=config.engine),
        estimate_cuda_graphs(eager=config.eager, engine=config.engine),
    )


def _errors(terms: Iterable[Term]) -> Iterator[float]:
    return (term.error for term in terms)
