"""Complete engine settings with vLLM's defaults, and check their ranges."""

from collections.abc import Sequence
from functools import lru_cache

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.facts.engines import EngineConstants
from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.model import Checkpoint
from rayhelm.planner.memory.accounting import EngineConfig
from rayhelm.planner.memory.engine_settings import EngineSettings
from rayhelm.planner.memory.input_limits import MOST_RANKS, MOST_TOKENS
from rayhelm.planner.shape import ReplicaShape

__all__ = ["assign_gpus_to_stages", "build_engine_config", "check_settings"]


def assign_gpus_to_stages(gpus: Sequence[GpuKind], stages: int) -> tuple[GpuKind, ...]:
    if len(gpus) == 1:
        return tuple(gpus) * stages
    if len(gpus) != stages:
        raise FleetError(
            Problem(
                f"{len(gpus)} GPUs for {stages} pipeline stages",
                fix=Fix(command=f"--pp {len(gpus)}", why="one GPU per stage, or one --gpu for all stages"),
            )
        )
    return tuple(gpus)


def build_engine_config(
    model: Checkpoint,
    gpus: tuple[GpuKind, ...],
    shape: ReplicaShape,
    settings: EngineSettings,
    constants: EngineConstants,
) -> EngineConfig:
    """Complete the settings with vLLM's defaults. `gpus`: one per stage."""
    if settings.lacks_hybrid_cache:
        constants = _without_hybrid_cache(constants)
    given = settings.utilization
    utilization = constants.gpu_memory_utilization if given is None else given
    context = model.default_context if settings.context is None else settings.context
    seqs, tokens = settings.seqs, settings.tokens
    if seqs is None or tokens is None:
        seqs, tokens = _complete_batch(gpus, constants, context, seqs, tokens)
    return EngineConfig(
        model=model,
        gpus=gpus,
        shape=shape,
        engine=constants,
        share=utilization * settings.fraction,
        context=context,
        seqs=seqs,
        tokens=tokens,
        kv_cache_dtype=settings.kv_cache_dtype,
        eager=settings.eager,
        dcp=settings.dcp,
        moe_backend=settings.moe_backend,
        adapters=settings.adapters,
    )


@lru_cache
def _without_hybrid_cache(constants: EngineConstants) -> EngineConstants:
    return constants.model_copy(update={"hybrid_cache": False})


def _complete_batch(
    gpus: tuple[GpuKind, ...], constants: EngineConstants, context: int, seqs: int | None, tokens: int | None
) -> tuple[int, int]:
    """Return max_num_seqs and max_num_batched_tokens, at least one of which is not given."""
    defaults = [constants.defaults_for(gpu) for gpu in gpus]
    batch = min(default.max_num_batched_tokens for default in defaults) if tokens is None else tokens
    running = min(default.max_num_seqs for default in defaults) if seqs is None else seqs
    if tokens is None:
        batch = min(running * context, batch)
    if seqs is None:
        running = min(running, batch)
    return running, batch


def check_settings(model: Checkpoint, shape: ReplicaShape, settings: EngineSettings) -> None:
    """Raise FleetError for values that vLLM does not accept."""
    shares = (
        ("gpu_memory_utilization", settings.utilization, 0.9),
        ("gpu_fraction", settings.fraction, 0.5),
    )
    counts = (
        ("tensor_parallel_size", shape.tp, MOST_RANKS),
        ("pipeline_parallel_size", shape.pp, MOST_RANKS),
        ("max_model_len", settings.context, MOST_TOKENS),
        ("max_num_seqs", settings.seqs, MOST_TOKENS),
        ("max_num_batched_tokens", settings.tokens, MOST_TOKENS),
    )
    problems = [
        Problem(f"{name} {value} is not between 0 and 1", fix=Fix(name, usual))
        for name, value, usual in shares
        if value is not None and not 0 < value <= 1
    ]
    problems += [
        Problem(f"{name} {count} is not between 1 and {most:,}", fix=Fix(name, min(most, max(1, count))))
        for name, count, most in counts
        if count is not None and not 1 <= count <= most
    ]
    if settings.context and model.max_context < settings.context <= MOST_TOKENS:
        problems.append(
            Problem(
                f"max_model_len {settings.context} exceeds the longest context of {model.id},"
                f" {model.max_context} tokens",
                fix=Fix("max_model_len", model.max_context),
            )
        )
    if problems:
        raise FleetError(problems)
