"""Build a replica from a model, its GPUs, its shape and the settings of the engine."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard

from rayhelm.errors import FleetError, Problem, collect
from rayhelm.facts.engines import find_engine
from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.model import Checkpoint
from rayhelm.facts.versions import versions
from rayhelm.planner.memory.engine_settings import EngineSettings, read_settings
from rayhelm.planner.memory.fit import Fit, fit
from rayhelm.planner.memory.input_limits import MOST_TOKENS
from rayhelm.planner.memory.kv_cache import count_token_bytes
from rayhelm.planner.shape import ReplicaShape
from rayhelm.planner.speed.replica import Replica, Speculation, StageLink

__all__ = ["build_replica"]


def build_replica(
    model: Checkpoint,
    gpus: Sequence[GpuKind],
    shape: ReplicaShape,
    *,
    context: int,
    engine: Mapping[str, object] | None = None,
    vllm_version: str | None = None,
    link: StageLink | None = None,
    speculation: Speculation | None = None,
) -> tuple[Replica, str]:
    """Return the replica, and why its KV cache is unknown (empty if it is known).

    `gpus`: one per pipeline stage. `context`: tokens of the longest request. `engine`: arguments of vLLM. Raises
    FleetError for settings that vLLM does not accept.
    """
    _check_engine(engine or {})
    settings = read_settings(engine or {})
    if model.experts is None:
        shape = replace(shape, has_expert_parallel=False)
    longest = replace(settings, context=settings.context or min(context, model.max_context))
    found, why = _fit(model, gpus, _find_memory_shape(shape), longest, vllm_version)
    constants, _ = find_engine(vllm_version or versions().vllm)
    replica = Replica(
        model=model,
        gpus=tuple(gpus),
        shape=shape,
        kv_bytes_per_token=count_token_bytes(model, shape, settings.kv_cache_dtype, constants),
        kv_tokens=found.kv_cache_tokens or None if found and found.fits else None,
        max_num_seqs=settings.seqs or (found.max_num_seqs if found else 256),
        batched_tokens=settings.tokens or (found.max_num_batched_tokens if found else 8192),
        link=link,
        speculation=speculation,
    )
    return replica, why


def _find_memory_shape(shape: ReplicaShape) -> ReplicaShape:
    """Return the shape that decides the memory of one rank: without what has no effect on it, which is refused as a
    setting of vLLM, but has a speed."""
    is_shared = shape.has_expert_parallel and shape.tp * shape.dp > 1
    return replace(shape, dp=shape.dp if is_shared and shape.pp == 1 else 1, has_expert_parallel=is_shared)


def _fit(
    model: Checkpoint,
    gpus: Sequence[GpuKind],
    shape: ReplicaShape,
    settings: EngineSettings,
    vllm_version: str | None,
) -> tuple[Fit | None, str]:
    found, problems = collect(lambda: fit(model, gpus, shape, settings, vllm_version=vllm_version))
    if not found:
        return None, "; ".join(problem.message for problem in problems)
    return found, "" if found.fits else f"`rayhelm fit` refuses this: {found.reason}"


def _check_engine(given: Mapping[str, object]) -> None:
    """Raise FleetError for numbers that vLLM does not accept. What only does not fit the GPU is a note instead."""
    for key in ("max_num_seqs", "max_num_batched_tokens", "max_model_len", "decode_context_parallel_size"):
        value = given.get(key)
        if value is not None and not (_is_number(value) and 1 <= value <= MOST_TOKENS):
            raise FleetError(Problem(f"{key} {value!r} is not a number of at least 1, and at most {MOST_TOKENS}"))
    utilization = given.get("gpu_memory_utilization")
    if utilization is not None and not (_is_number(utilization) and 0 < utilization <= 1):
        raise FleetError(Problem(f"gpu_memory_utilization {utilization!r} is not a number above 0, and at most 1"))


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
