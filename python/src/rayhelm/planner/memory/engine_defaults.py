"""Complete engine settings with vLLM's defaults, and checks their ranges."""

from collections.abc import Iterable, Sequence

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.facts.engines import EngineConstants
from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.model import Checkpoint
from rayhelm.planner.memory.accounting import EngineConfig
from rayhelm.planner.memory.input_limits import MOST_RANKS, MOST_TOKENS

__all__ = ["assign_gpus_to_stages", "build_engine_config"]


def assign_gpus_to_stages(gpus: Sequence[GpuKind], pp: int | None) -> tuple[GpuKind, ...]:
    stages = pp or len(gpus)
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
    tp: int,
    constants: EngineConstants,
    *,
    utilization: float | None,
    context: int | None,
    seqs: int | None,
    tokens: int | None,
    fraction: float,
) -> EngineConfig:
    """Complete the settings with vLLM's defaults. Raises FleetError for values that vLLM does not accept.

    `utilization`: part of the GPU memory, 0 to 1. `fraction`: part of the GPU that the engine has. Lengths in tokens.
    """
    utilization = constants.gpu_memory_utilization if utilization is None else utilization
    context = model.max_context if context is None else context
    counts = (
        ("tensor_parallel_size", tp, MOST_RANKS),
        ("pipeline_parallel_size", len(gpus), MOST_RANKS),
        ("max_model_len", context, MOST_TOKENS),
        ("max_num_seqs", seqs, MOST_TOKENS),
        ("max_num_batched_tokens", tokens, MOST_TOKENS),
    )
    _check(model, utilization=utilization, fraction=fraction, context=context, counts=counts)
    defaults = [constants.defaults_for(gpu) for gpu in gpus]
    batch = min(default.max_num_batched_tokens for default in defaults) if tokens is None else tokens
    running = min(default.max_num_seqs for default in defaults) if seqs is None else seqs
    if tokens is None:
        batch = min(running * context, batch)
    if seqs is None:
        running = min(running, batch)
    return EngineConfig(model, gpus, tp, utilization * fraction, context, running, batch, "auto", False, constants)


def _check(
    model: Checkpoint,
    *,
    utilization: float,
    fraction: float,
    context: int,
    counts: Iterable[tuple[str, int | None, int]],
) -> None:
    problems = [
        Problem(f"{name} {value} is not between 0 and 1", fix=Fix(name, usual))
        for name, value, usual in (("gpu_memory_utilization", utilization, 0.9), ("gpu_fraction", fraction, 0.5))
        if not 0 < value <= 1
    ]
    problems += [
        Problem(f"{name} {count} is not between 1 and {most:,}", fix=Fix(name, min(most, max(1, count))))
        for name, count, most in counts
        if count is not None and not 1 <= count <= most
    ]
    if model.max_context < context <= MOST_TOKENS:
        problems.append(
            Problem(
                f"max_model_len {context} exceeds the longest context of {model.id}, {model.max_context} tokens",
                fix=Fix("max_model_len", model.max_context),
            )
        )
    if problems:
        raise FleetError(problems)
