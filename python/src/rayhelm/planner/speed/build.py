"""Build the shape of a replica from a model, its GPUs and the settings of the engine."""

from collections.abc import Mapping, Sequence
from typing import TypeGuard

from rayhelm.errors import FleetError, Problem
from rayhelm.facts.engines import find_engine
from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.model import Checkpoint
from rayhelm.facts.versions import versions
from rayhelm.planner.memory.fit import Fit, fit
from rayhelm.planner.memory.input_limits import MOST_TOKENS
from rayhelm.planner.memory.kv_cache import lay_out_kv_cache
from rayhelm.planner.memory.parallelism import find_partition
from rayhelm.planner.speed.shape import ReplicaShape, Speculation, StageLink

__all__ = ["build_shape", "count_kv_bytes"]


def build_shape(
    model: Checkpoint,
    gpus: Sequence[GpuKind],
    tp: int,
    *,
    dp: int = 1,
    has_expert_parallel: bool = False,
    context: int,
    engine: Mapping[str, object] | None = None,
    vllm_version: str | None = None,
    link: StageLink | None = None,
    speculation: Speculation | None = None,
) -> tuple[ReplicaShape, str]:
    """Return the shape, and why its KV cache is unknown (empty if it is known).

    `gpus`: one per pipeline stage. `context`: tokens of the longest request. `engine`: arguments of vLLM. Raises
    FleetError for settings that vLLM does not accept.
    """
    given = engine or {}
    _check_engine(given)
    dtype = str(given.get("kv_cache_dtype") or "auto")
    has_expert_parallel = has_expert_parallel and model.experts is not None
    found, why = _fit(model, gpus, (tp, dp), has_expert_parallel, context, given, dtype, vllm_version)
    seqs = _int(given, "max_num_seqs") or (found.max_num_seqs if found else 256)
    shape = ReplicaShape(
        model=model,
        gpus=tuple(gpus),
        tp=tp,
        dp=dp,
        has_expert_parallel=has_expert_parallel,
        kv_bytes_per_token=count_kv_bytes(model, tp, len(gpus), dtype, vllm_version),
        kv_tokens=found.kv_cache_tokens or None if found and found.fits else None,
        max_num_seqs=seqs,
        batched_tokens=_int(given, "max_num_batched_tokens") or (found.max_num_batched_tokens if found else 8192),
        link=link,
        speculation=speculation,
    )
    return shape, why


def count_kv_bytes(model: Checkpoint, tp: int, pp: int, dtype: str, vllm_version: str | None = None) -> float:
    """Return bytes of one token in the caches of one GPU of each stage; 0 for a model without a cache."""
    constants, _ = find_engine(vllm_version or versions().vllm)
    cache = lay_out_kv_cache(model, tp, find_partition(model, pp), dtype, constants)
    return sum(cache.token_bytes(stage) for stage in range(pp)) if cache else 0.0


def _fit(
    model: Checkpoint,
    gpus: Sequence[GpuKind],
    sizes: tuple[int, int],
    has_expert_parallel: bool,
    context: int,
    given: Mapping[str, object],
    dtype: str,
    vllm_version: str | None,
) -> tuple[Fit | None, str]:
    tp, dp = sizes
    is_shared = has_expert_parallel and tp * dp > 1
    length = _int(given, "max_model_len") or min(context, model.max_context)
    utilization = given.get("gpu_memory_utilization")
    try:
        found = fit(
            model,
            gpus,
            tp,
            len(gpus),
            gpu_memory_utilization=utilization if isinstance(utilization, (int, float)) else None,
            max_model_len=length,
            max_num_seqs=_int(given, "max_num_seqs"),
            max_num_batched_tokens=_int(given, "max_num_batched_tokens"),
            kv_cache_dtype=dtype,
            expert_parallel=is_shared,
            dp=dp if is_shared and len(gpus) == 1 else 1,
            enforce_eager=bool(given.get("enforce_eager")),
            moe_backend=str(given.get("moe_backend") or "auto"),
            vllm_version=vllm_version,
        )
    except FleetError as error:
        return None, "; ".join(problem.message for problem in error.problems)
    return found, "" if found.fits else f"`rayhelm fit` refuses this: {found.reason}"


def _check_engine(given: Mapping[str, object]) -> None:
    """Raise FleetError for numbers that vLLM does not accept. What only does not fit the GPU is a note instead."""
    for key in ("max_num_seqs", "max_num_batched_tokens", "max_model_len"):
        _int(given, key)
    utilization = given.get("gpu_memory_utilization")
    if utilization is not None and not (_is_number(utilization) and 0 < utilization <= 1):
        raise FleetError(Problem(f"gpu_memory_utilization {utilization!r} is not a number above 0, and at most 1"))


def _int(given: Mapping[str, object], key: str) -> int | None:
    value = given.get(key)
    if value is None:
        return None
    if not _is_number(value) or not 1 <= value <= MOST_TOKENS:
        raise FleetError(Problem(f"{key} {value!r} is not a number of at least 1, and at most {MOST_TOKENS}"))
    return int(value)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
