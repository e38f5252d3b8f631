"""Whether a model fits on one or more GPUs, by vLLM's own memory accounting."""

from collections.abc import Sequence
from dataclasses import replace

from rayhelm.facts import Catalog
from rayhelm.facts.closed import Closed
from rayhelm.facts.engines import find_engine, is_older_than_measured, list_engines
from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.model import Checkpoint
from rayhelm.facts.versions import versions
from rayhelm.planner.memory.accounting import EngineConfig, MemoryResult, StageMemory, evaluate
from rayhelm.planner.memory.engine_defaults import assign_gpus_to_stages, build_engine_config, check_settings
from rayhelm.planner.memory.engine_settings import EngineSettings
from rayhelm.planner.memory.fit_fixes import FitFix, list_fixes, list_split_fixes
from rayhelm.planner.memory.fit_messages import explain_custom_engine, explain_fit, list_notes, list_unknown_figures
from rayhelm.planner.memory.gpu_memory import GIB
from rayhelm.planner.memory.parallelism import list_context_errors, list_split_errors
from rayhelm.planner.memory.quantization import find_quantization_error
from rayhelm.planner.shape import ReplicaShape

__all__ = ["Fit", "FitStage", "fit"]

_ONE_GPU, _DEFAULTS = ReplicaShape(), EngineSettings()
_TIGHT_SHARE = 0.15
"""A fit is tight if less than this part of the memory budget is left for the KV cache."""


class FitStage(Closed):
    """One pipeline stage."""

    gpu: str
    layers: int
    weights_gib: float
    """Per GPU of the stage."""
    kv_gib: float
    """KV cache allocated per GPU: the number of blocks of the weakest stage times the bytes per block of this stage."""


class Fit(Closed):
    """The answer. Figures per GPU are those of the weakest stage; None if a fact is missing (see `unknown`)."""

    fits: bool
    """vLLM would start with these settings. False if that cannot be said (`is_measured_version`)."""
    is_measured_version: bool = True
    """False for a version of vLLM older than each version with measured constants: no fit is stated for it."""
    kv_available_range_gib: tuple[float, float] | None = None
    """For such a version: least and most cache, GiB per GPU, by the constants of all known versions."""
    tight: bool
    """It fits, but the error of the estimate is larger than the margin, or less than 15 % of the budget is left for the
    KV cache, or the cache holds fewer than two requests of full context."""
    reason: str
    fixes: tuple[FitFix, ...] = ()
    """Changes that would make it fit; at least one if it does not."""
    model: str
    gpu: str
    """GPU id; the ids of different stages are joined with `+`."""
    vllm_version: str
    """Version whose constants were used."""
    tensor_parallel_size: int
    pipeline_parallel_size: int
    expert_parallel: bool = False
    gpu_memory_utilization: float
    """Part of each GPU's memory that the engine may use; includes the factor of a GPU fraction."""
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    weights_gib_per_gpu: float | None = None
    activation_gib: float | None = None
    non_torch_gib: float | None = None
    """Includes memory that torch.compile still holds."""
    cuda_graph_gib: float | None = None
    """Subtracted from the cache; 0 with enforce_eager and before vLLM 0.21, whose graphs are outside of the budget."""
    kv_available_gib_per_gpu: float | None = None
    """Negative if weights and activations exceed the budget, by this amount."""
    error_gib: float | None = None
    """kv_available_gib_per_gpu lies within plus or minus this."""
    kv_cache_tokens: int | None = None
    """Tokens, as vLLM logs it. 0 for models without a KV cache."""
    max_concurrency: float | None = None
    """Requests of max_model_len tokens at a time; max_num_seqs for models without a KV cache."""
    largest_context: int | None = None
    """Longest max_model_len with which vLLM would start."""
    stages: tuple[FitStage, ...] = ()
    """One per pipeline stage, in the given order; empty for a single stage."""
    fits_every_order: bool = True
    """It fits in every order of the stages. vLLM orders pipeline ranks itself, so different GPUs can swap places."""
    notes: tuple[str, ...] = ()
    """Assumptions behind the figures."""
    unknown: tuple[str, ...] = ()
    """Facts that were missing, and constants taken from another vLLM version."""


def fit(
    model: Checkpoint,
    gpus: Sequence[GpuKind],
    shape: ReplicaShape = _ONE_GPU,
    settings: EngineSettings = _DEFAULTS,
    *,
    vllm_version: str | None = None,
    facts: Catalog | None = None,
) -> Fit:
    """Compute the memory of `model` on `gpus` (one kind for all stages, or one per stage).

    With data parallel ranks the figures are those of one rank. `facts`: where to look for checkpoints and GPUs that
    would fit. Raises FleetError for values that vLLM does not accept."""
    constants, note = find_engine(vllm_version or versions().vllm)
    stage_gpus = assign_gpus_to_stages(gpus, shape.pp)
    check_settings(model, shape, settings)
    config = build_engine_config(model, stage_gpus, shape, settings, constants)
    unknown = (*list_unknown_figures(config), *((note,) if note else ()))
    if refused := list_context_errors(model, shape.tp, config.dcp):
        fixes = (FitFix(settings={"decode_context_parallel_size": 1}, why="each rank holds all tokens"),)
        return _build_bare_fit(config, f"vLLM refuses this split: {refused[0]}", fixes, unknown)
    if refused := list_split_errors(model, shape, constants):
        return _build_bare_fit(
            config, f"vLLM refuses this split: {'; '.join(refused)}", list_split_fixes(config), unknown
        )
    if errors := [error for gpu in stage_gpus if (error := find_quantization_error(model, gpu, constants))]:
        fixes = (FitFix(why="use another checkpoint of the model, or another GPU"),)
        return _build_bare_fit(config, errors[0], fixes, unknown)
    if any(gpu.usable_gib is None or gpu.engine == "none" for gpu in stage_gpus):
        return _build_bare_fit(config, unknown[0], list_split_fixes(config), unknown)
    answer = _answer(evaluate(config), unknown, facts)
    return _withdraw(answer, config, vllm_version) if vllm_version and is_older_than_measured(vllm_version) else answer


def _withdraw(answer: Fit, config: EngineConfig, version: str) -> Fit:
    """Return the answer for a version without constants: a range by those of all known versions, and no fit."""
    caches = [evaluate(replace(config, engine=engine)).weakest for engine in list_engines()]
    least, most = min(c.cache - c.error for c in caches) / GIB, max(c.cache + c.error for c in caches) / GIB
    oldest = list_engines()[0].version
    return answer.model_copy(
        update={
            "fits": False,
            "tight": False,
            "is_measured_version": False,
            "kv_available_range_gib": (least, most),
            "fits_every_order": False,
            "kv_available_gib_per_gpu": None,
            "kv_cache_tokens": None,
            "max_concurrency": None,
            "largest_context": None,
            "stages": (),
            "reason": (
                f"not safe to call: vLLM {version} is older than {oldest}, the oldest version with measured constants."
                f" By the constants of all known versions {least:.1f} to {most:.1f} GiB are left for the KV cache"
            ),
            "fixes": (
                FitFix(settings={"vllm_version": versions().vllm}, why="the pinned version, whose memory is known"),
            ),
        }
    )


def _answer(result: MemoryResult, unknown: tuple[str, ...], facts: Catalog | None) -> Fit:
    config, weakest = result.config, result.weakest
    bare = config.model.engine == "custom"
    answer = _build_bare_fit(config, "", (), unknown)
    tight = result.fits and _is_tight(result)
    return answer.model_copy(
        update={
            "fits": result.fits,
            "tight": tight,
            "reason": explain_custom_engine(result) if bare else explain_fit(result, tight=tight),
            "fixes": () if result.fits else list_fixes(result, facts),
            "weights_gib_per_gpu": weakest.weights / GIB,
            "activation_gib": None if bare else weakest.activation / GIB,
            "non_torch_gib": None if bare else weakest.non_torch / GIB,
            "cuda_graph_gib": None if bare else weakest.cuda_graphs / GIB,
            "kv_available_gib_per_gpu": None if bare else weakest.cache / GIB,
            "error_gib": weakest.error / GIB,
            "kv_cache_tokens": None if bare else result.tokens,
            "max_concurrency": None if bare else result.concurrency,
            "largest_context": None if bare else result.largest_context,
            "stages": tuple(_build_stage(stage, result) for stage in result.stages) if config.shape.pp > 1 else (),
            "fits_every_order": result.fits and _fits_every_order(config),
        }
    )


def _build_bare_fit(config: EngineConfig, reason: str, ways: tuple[FitFix, ...], unknown: tuple[str, ...]) -> Fit:
    """Return an answer without memory figures."""
    names = [gpu.id for gpu in config.gpus]
    return Fit(
        fits=False,
        tight=False,
        reason=reason,
        fixes=ways,
        model=config.model.id,
        gpu=names[0] if len(set(names)) == 1 else "+".join(names),
        vllm_version=config.engine.version,
        tensor_parallel_size=config.shape.tp,
        pipeline_parallel_size=config.shape.pp,
        expert_parallel=config.shape.has_expert_parallel,
        gpu_memory_utilization=config.share,
        max_model_len=config.context,
        max_num_seqs=config.seqs,
        max_num_batched_tokens=config.tokens,
        fits_every_order=False,
        notes=list_notes(config),
        unknown=unknown,
    )


def _build_stage(stage: StageMemory, result: MemoryResult) -> FitStage:
    return FitStage(
        gpu=stage.gpu.id,
        layers=stage.layers,
        weights_gib=stage.weights / GIB,
        kv_gib=result.blocks * stage.block / GIB,
    )


def _is_tight(result: MemoryResult) -> bool:
    """Return models without a cache: the error of the estimate alone decides. Models of other applications: always
    tight."""
    if not result.fits_within_error or result.config.model.engine == "custom":
        return True
    weakest = result.weakest
    return result.config.cache is not None and (weakest.cache < _TIGHT_SHARE * weakest.budget or result.concurrency < 2)


def _fits_every_order(config: EngineConfig) -> bool:
    """Return whether each kind of GPU holds every stage, because vLLM can put any GPU at any stage."""
    kinds, stages = {gpu.id: gpu for gpu in config.gpus}, config.shape.pp
    return len(kinds) == 1 or all(evaluate(replace(config, gpus=(gpu,) * stages)).fits for gpu in kinds.values())
