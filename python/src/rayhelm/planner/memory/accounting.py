"""Memory of one model under one split, per pipeline stage, and the KV cache that is left."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import hypot

from rayhelm.facts.engines import EngineConstants
from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.model import Checkpoint
from rayhelm.planner.memory.adapter_slots import AdapterSlots, count_adapter_bytes
from rayhelm.planner.memory.expert_padding import find_padding
from rayhelm.planner.memory.gpu_memory import (
    GIB,
    Term,
    count_rotary_table,
    count_stage_weights,
    estimate_activation,
    estimate_cuda_graphs,
    estimate_non_torch,
)
from rayhelm.planner.memory.kv_cache import KvCache, lay_out_kv_cache
from rayhelm.planner.memory.parallelism import find_partition
from rayhelm.planner.shape import ReplicaShape

__all__ = ["EngineConfig", "MemoryResult", "StageMemory", "evaluate"]

_WEIGHTS_ERROR = 0.01
"""Published start-up logs differ by at most 0.9 %: rotary tables, alignment, repacking."""


@dataclass(frozen=True)
class EngineConfig:
    """A model, its GPUs, and every engine setting that memory depends on."""

    model: Checkpoint
    gpus: tuple[GpuKind, ...]
    """One per stage."""
    shape: ReplicaShape
    """Seqs, tokens and cache are those of one data parallel rank."""
    engine: EngineConstants
    share: float
    """Part of each GPU's memory that the engine may use, 0 to 1."""
    context: int
    seqs: int
    tokens: int
    kv_cache_dtype: str
    eager: bool
    dcp: int
    moe_backend: str
    adapters: AdapterSlots | None

    @cached_property
    def layers(self) -> tuple[int, ...]:
        return find_partition(self.model, self.shape)

    @cached_property
    def cache(self) -> KvCache | None:
        return lay_out_kv_cache(self.model, self.shape.tp, self.layers, self.kv_cache_dtype, self.engine)

    @property
    def in_flight(self) -> int:
        return self.tokens * (self.engine.batches_in_flight + self.shape.pp - 1)

    @property
    def state_blocks(self) -> int:
        """Blocks that vLLM needs for its CUDA graphs: one for each sequence, if layers have a recurrent state."""
        has_state = self.cache is not None and any(group.kind == "recurrent" for group in self.cache.groups)
        return self.seqs if has_state and self.engine.checks_state_blocks and not self.eager else 0

    def blocks_of_a_request(self) -> int:
        if self.cache is None:
            return 0
        return self.cache.request_blocks(self.context, in_flight=self.in_flight, batch=self.tokens, ranks=self.dcp)


@dataclass(frozen=True)
class StageMemory:
    """Memory of one GPU of one stage, bytes."""

    gpu: GpuKind
    layers: int
    budget: float
    weights: float
    """Of the model and its table of rotary positions, without adapters."""
    adapters: float
    """Slots of LoRA adapters."""
    activation: float
    non_torch: float
    cuda_graphs: float
    error: float
    """`cache` lies within plus or minus this, bytes."""
    block: int
    """Bytes of one KV cache block on this GPU; 0 without a cache."""

    @property
    def cache(self) -> float:
        """Bytes left for the KV cache; negative if the other terms exceed the budget."""
        return self.budget - self.weights - self.adapters - self.activation - self.non_torch - self.cuda_graphs

    @property
    def blocks(self) -> int:
        return max(0, int(self.cache // self.block)) if self.block else 0


@dataclass(frozen=True)
class MemoryResult:
    """The memory of all stages. Every stage has as many blocks as the weakest one."""

    config: EngineConfig
    stages: tuple[StageMemory, ...]
    request_blocks: int
    """Blocks of one request of full context."""

    @cached_property
    def weakest(self) -> StageMemory:
        return min(self.stages, key=lambda stage: (stage.blocks, stage.cache))

    @property
    def blocks(self) -> int:
        return self.weakest.blocks

    @property
    def fits(self) -> bool:
        """vLLM starts: the cache holds one request of full context besides the null block, and the blocks for CUDA
        graphs."""
        return all(self._holds(stage) for stage in self.stages)

    @property
    def fits_within_error(self) -> bool:
        """It fits even if the cache is smaller by the error of the estimate."""
        return all(self._holds(stage, stage.error) for stage in self.stages)

    @property
    def lacks_state_blocks(self) -> bool:
        """The cache has fewer blocks than vLLM needs for its CUDA graphs."""
        return self.blocks < self.config.state_blocks

    @property
    def missing(self) -> float:
        """Bytes that the weakest GPU lacks for `needed`; 0 if it fits."""
        stage = self.weakest
        return max(0.0, self.needed - stage.cache)

    @property
    def needed(self) -> float:
        """Bytes that the start-up checks ask of the weakest GPU."""
        return self._count_needed(self.weakest)

    @property
    def concurrency(self) -> float:
        """Requests of full context at a time."""
        if self.config.cache is None:
            return float(self.config.seqs) if self.fits else 0.0
        return self.blocks / self.request_blocks

    @property
    def tokens(self) -> int:
        """Tokens in the cache, as vLLM logs it: concurrency x context."""
        return int(self.concurrency * self.config.context) if self.config.cache else 0

    @property
    def largest_context(self) -> int:
        """Longest context with which vLLM would start, tokens; 0 if none."""
        config = self.config
        if self.lacks_state_blocks:
            return 0
        if config.cache is None:
            return config.model.max_context if self.fits else 0
        usable = int(self.weakest.cache // self._count_block(self.weakest)) - config.engine.null_block
        return config.cache.largest_context(
            max(0, usable),
            config.model.max_context,
            in_flight=config.in_flight,
            batch=config.tokens,
            ranks=config.dcp,
        )

    def _holds(self, stage: StageMemory, less: float = 0.0) -> bool:
        cache = stage.cache - less
        return cache > 0 and cache >= self._count_needed(stage)

    def _count_needed(self, stage: StageMemory) -> float:
        """Return the bytes that the start-up checks ask of a stage: for one request of full context, and for CUDA
        graphs."""
        request = (self.request_blocks + self.config.engine.null_block) * self._count_block(stage)
        return max(request, self.config.state_blocks * stage.block)

    def _count_block(self, stage: StageMemory) -> int:
        """Return the bytes of one block in the start-up check."""
        return sum(each.block for each in self.stages) if self.config.engine.checks_all_layers else stage.block


def evaluate(config: EngineConfig) -> MemoryResult:
    """Compute the memory of every stage, in the order of `config.gpus`."""
    return MemoryResult(config, tuple(_compute_stages(config)), config.blocks_of_a_request())


def _compute_stages(config: EngineConfig) -> Iterator[StageMemory]:
    paddings = [find_padding(gpu, config.moe_backend) for gpu in config.gpus]
    weights = {
        padding: count_stage_weights(config.model, config.shape, config.engine, padding)
        for padding in dict.fromkeys(paddings)
    }
    slots = config.adapters and count_adapter_bytes(config.model, config.shape, config.adapters)
    for stage, gpu in enumerate(config.gpus):
        work, outside, graphs = _estimate_terms(config, stage)
        held = weights[paddings[stage]][stage] + count_rotary_table(config.model)
        yield StageMemory(
            gpu=gpu,
            layers=config.layers[stage],
            budget=(gpu.usable_gib or 0.0) * GIB * config.share,
            weights=held,
            adapters=slots[stage] if slots else 0.0,
            activation=work.bytes,
            non_torch=outside.bytes,
            cuda_graphs=graphs.bytes,
            error=hypot(held * _WEIGHTS_ERROR, *_list_errors((work, outside, graphs))),
            block=config.cache.block_bytes(stage) if config.cache else 0,
        )


def _estimate_terms(config: EngineConfig, stage: int) -> tuple[Term, Term, Term]:
    """Return activations, non-torch memory and CUDA graphs; zero for models that vLLM does not serve."""
    if config.model.engine == "custom":
        return Term(0.0), Term(0.0), Term(0.0)
    last = stage == config.shape.pp - 1
    return (
        estimate_activation(
            config.model,
            config.shape,
            seqs=config.seqs,
            tokens=config.tokens,
            last_stage=last,
            engine=config.engine,
        ),
        estimate_non_torch(
            config.shape,
            eager=config.eager,
            # vLLM reads the memory of the whole computer on integrated GPUs of NVIDIA only.
            is_unified=config.gpus[stage].unified_memory and config.gpus[stage].vendor == "nvidia",
            engine=config.engine,
        ),
        estimate_cuda_graphs(eager=config.eager, engine=config.engine),
    )


def _list_errors(terms: Iterable[Term]) -> Iterator[float]:
    return (term.error for term in terms)
