"""Does a model fit a card, or several: vLLM's own accounting, done before anybody rents one."""

from collections.abc import Sequence
from dataclasses import replace

from rayhelm.catalog import Catalog
from rayhelm.catalog.engines import find_engine
from rayhelm.catalog.gpu import GpuKind
from rayhelm.catalog.model import Checkpoint
from rayhelm.closed import Closed
from rayhelm.planner.memory.accounting import EngineConfig, MemoryResult, StageMemory, evaluate
from rayhelm.planner.memory.engine_defaults import assign_gpus_to_stages, build_engine_config
from rayhelm.planner.memory.fit_fixes import list_fixes, list_split_fixes
from rayhelm.planner.memory.fit_messages import explain_custom_engine, explain_fit, list_notes, list_unknown_figures
from rayhelm.planner.memory.gpu_memory import GIB
from rayhelm.planner.memory.parallelism import list_split_errors
from rayhelm.versions import versions

__all__ = ["Fit", "FitStage", "fit"]

_TIGHT_SHARE = 0.15
"""Where less of the budget than this is left for the cache, it is what little remains beside the weights."""


class FitStage(Closed):
    """One pipeline stage."""

    gpu: str
    layers: int
    weights_gib: float
    """Per card of the stage."""
    kv_gib: float
    """Cache that is allocated per card: the weakest stage's number of blocks, at this stage's bytes per block."""


class Fit(Closed):
    """The answer. Figures per GPU are those of the weakest stage; None where a fact is missing (see `unknown`)."""

    fits: bool
    """vLLM would start with these settings."""
    tight: bool
    """It fits, but errors of the estimate could turn it over, or the cache is what little remains beside the weights,
    or it holds fewer than two requests of full context."""
    reason: str
    fixes: tuple[str, ...] = ()
    """What would make it fit; never empty when it does not."""
    model: str
    gpu: str
    """Unlike stages joined with `+`."""
    vllm_version: str
    """Version whose constants were used."""
    tensor_parallel_size: int
    pipeline_parallel_size: int
    gpu_memory_utilization: float
    """Share of each card that the engine is given, a fraction of a card counted in."""
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    weights_gib_per_gpu: float | None = None
    activation_gib: float | None = None
    non_torch_gib: float | None = None
    """With what torch.compile leaves behind."""
    cuda_graph_gib: float | None = None
    """Counted against the cache; 0 with enforce_eager, and before vLLM 0.21, where graphs come on top of the share."""
    kv_available_gib_per_gpu: float | None = None
    """Negative: by how much the rest is too large."""
    error_gib: float | None = None
    """Half width of the band of kv_available_gib_per_gpu."""
    kv_cache_tokens: int | None = None
    """As vLLM logs it. 0 for models that cache nothing."""
    max_concurrency: float | None = None
    """Requests of max_model_len at a time; max_num_seqs for models that cache nothing."""
    largest_context: int | None = None
    """Longest max_model_len with which vLLM would start."""
    stages: tuple[FitStage, ...] = ()
    """One per pipeline stage, in the given order; empty for a single stage."""
    fits_every_order: bool = True
    """vLLM orders the ranks of a pipeline itself: over unlike cards the plan must fit whichever card comes first."""
    notes: tuple[str, ...] = ()
    """How the figures were counted, where that may surprise."""
    unknown: tuple[str, ...] = ()
    """Facts that were missing, and constants that are another version's."""


def fit(
    model: Checkpoint,
    gpus: Sequence[GpuKind],
    tp: int = 1,
    pp: int | None = None,
    *,
    gpu_memory_utilization: float | None = None,
    max_model_len: int | None = None,
    max_num_seqs: int | None = None,
    max_num_batched_tokens: int | None = None,
    kv_cache_dtype: str = "auto",
    enforce_eager: bool = False,
    vllm_version: str | None = None,
    share: float = 1.0,
    partition: tuple[int, ...] | None = None,
    catalog: Catalog | None = None,
) -> Fit:
    """Account for `model` on `gpus` (one kind, or one per stage). What is None takes vLLM's default for an API server
    on the smallest of the cards. `share`: fraction of each card. `catalog`: where to look for what would fit."""
    constants, note = find_engine(vllm_version or versions().vllm)
    stage_gpus = assign_gpus_to_stages(gpus, pp)
    ask = build_engine_config(
        model,
        stage_gpus,
        tp,
        constants,
        utilization=gpu_memory_utilization,
        context=max_model_len,
        seqs=max_num_seqs,
        tokens=max_num_batched_tokens,
        fraction=share,
    )
    ask = replace(ask, kv_cache_dtype=kv_cache_dtype, eager=enforce_eager, partition=partition)
    unknown = (*list_unknown_figures(ask), *((note,) if note else ()))
    if refused := list_split_errors(model, tp, ask.pp, constants):
        return _bare(ask, f"vLLM refuses this split: {'; '.join(refused)}", list_split_fixes(ask), unknown)
    if any(gpu.usable_gib is None or gpu.engine == "none" for gpu in stage_gpus):
        return _bare(ask, unknown[0], list_split_fixes(ask), unknown)
    return _answer(evaluate(ask), unknown, catalog)


def _answer(outcome: MemoryResult, unknown: tuple[str, ...], catalog: Catalog | None) -> Fit:
    ask, weakest = outcome.ask, outcome.weakest
    bare = ask.model.engine == "custom"
    answer = _bare(ask, "", (), unknown)
    tight = outcome.fits and _tight(outcome)
    return answer.model_copy(
        update={
            "fits": outcome.fits,
            "tight": tight,
            "reason": explain_custom_engine(outcome) if bare else explain_fit(outcome, tight=tight),
            "fixes": () if outcome.fits else list_fixes(outcome, catalog),
            "weights_gib_per_gpu": weakest.weights / GIB,
            "activation_gib": None if bare else weakest.activation / GIB,
            "non_torch_gib": None if bare else weakest.non_torch / GIB,
            "cuda_graph_gib": None if bare else weakest.cuda_graphs / GIB,
            "kv_available_gib_per_gpu": None if bare else weakest.cache / GIB,
            "error_gib": weakest.error / GIB,
            "kv_cache_tokens": None if bare else outcome.tokens,
            "max_concurrency": None if bare else outcome.concurrency,
            "largest_context": None if bare else outcome.largest_context,
            "stages": tuple(_stage(stage, outcome) for stage in outcome.stages) if ask.pp > 1 else (),
            "fits_every_order": outcome.fits and _fits_every_order(ask),
        }
    )


def _bare(ask: EngineConfig, reason: str, ways: tuple[str, ...], unknown: tuple[str, ...]) -> Fit:
    """An answer without figures."""
    names = [gpu.id for gpu in ask.gpus]
    return Fit(
        fits=False,
        tight=False,
        reason=reason,
        fixes=ways,
        model=ask.model.id,
        gpu=names[0] if len(set(names)) == 1 else "+".join(names),
        vllm_version=ask.engine.version,
        tensor_parallel_size=ask.tp,
        pipeline_parallel_size=ask.pp,
        gpu_memory_utilization=ask.share,
        max_model_len=ask.context,
        max_num_seqs=ask.seqs,
        max_num_batched_tokens=ask.tokens,
        fits_every_order=False,
        notes=list_notes(ask),
        unknown=unknown,
    )


def _stage(stage: StageMemory, outcome: MemoryResult) -> FitStage:
    return FitStage(
        gpu=stage.gpu.id,
        layers=stage.layers,
        weights_gib=stage.weights / GIB,
        kv_gib=outcome.blocks * stage.block / GIB,
    )


def _tight(outcome: MemoryResult) -> bool:
    """Models that cache nothing are tight by the band alone; those of other applications always are."""
    if not outcome.fits_within_error or outcome.ask.model.engine == "custom":
        return True
    weakest = outcome.weakest
    return outcome.ask.cache is not None and (weakest.cache < _TIGHT_SHARE * weakest.budget or outcome.concurrency < 2)


def _fits_every_order(ask: EngineConfig) -> bool:
    """Any card may come to stand at any stage, so each kind must hold every stage."""
    kinds = {gpu.id: gpu for gpu in ask.gpus}
    return len(kinds) == 1 or all(evaluate(replace(ask, gpus=(gpu,) * ask.pp)).fits for gpu in kinds.values())
