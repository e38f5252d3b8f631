"""What is asked of the accounting: vLLM's defaults where nothing was said, and refusals of what makes no sense."""

from collections.abc import Sequence

from rayhelm.catalog.engines import Engine
from rayhelm.catalog.gpu import Gpu
from rayhelm.catalog.model import Model
from rayhelm.errors import FleetError, Problem
from rayhelm.planner.evaluate import Ask

__all__ = ["ask_of", "per_stage"]


def per_stage(gpus: Sequence[Gpu], pp: int | None) -> tuple[Gpu, ...]:
    stages = pp or len(gpus)
    if len(gpus) == 1:
        return tuple(gpus) * stages
    if len(gpus) != stages:
        raise FleetError(
            Problem(
                f"{len(gpus)} GPUs for {stages} pipeline stages",
                mend="name one GPU for all stages, or one for each stage",
            )
        )
    return tuple(gpus)


def ask_of(
    model: Model,
    gpus: tuple[Gpu, ...],
    tp: int,
    constants: Engine,
    *,
    utilization: float | None,
    context: int | None,
    seqs: int | None,
    tokens: int | None,
    fraction: float,
) -> Ask:
    """Fill in what vLLM chooses by itself, and refuse what it would not take at all."""
    utilization = constants.gpu_memory_utilization if utilization is None else utilization
    context = model.max_context if context is None else context
    _check(model, utilization=utilization, fraction=fraction, context=context, counts=(tp, seqs, tokens))
    defaults = [constants.defaults_for(gpu) for gpu in gpus]
    batch = min(default.max_num_batched_tokens for default in defaults) if tokens is None else tokens
    running = min(default.max_num_seqs for default in defaults) if seqs is None else seqs
    if tokens is None:
        batch = min(running * context, batch)
    if seqs is None:
        running = min(running, batch)
    return Ask(model, gpus, tp, utilization * fraction, context, running, batch, "auto", False, constants)


def _check(model: Model, *, utilization: float, fraction: float, context: int, counts: tuple[int | None, ...]) -> None:
    problems = [
        Problem(f"{name} {value} is not between 0 and 1", mend=f"{name}: 0.9")
        for name, value in (("gpu_memory_utilization", utilization), ("share", fraction))
        if not 0 < value <= 1
    ]
    if any(count is not None and count < 1 for count in counts) or context < 1:
        problems.append(Problem("sizes and counts are whole numbers from 1 on"))
    if context > model.max_context:
        problems.append(
            Problem(
                f"max_model_len {context} is beyond the {model.max_context} tokens that {model.id} takes",
                mend=f"max_model_len: {model.max_context}",
            )
        )
    if problems:
        raise FleetError(problems)
