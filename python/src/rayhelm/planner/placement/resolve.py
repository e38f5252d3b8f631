"""Finds the settings with which a model starts on a split: the first of a ladder that fits with certainty."""

from collections.abc import Iterator
from dataclasses import replace
from math import floor

from rayhelm.planner.memory.accounting import EngineConfig, MemoryResult, evaluate
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.placement.model_splits import ModelSplit

__all__ = ["SEQUENCES", "resolve_settings"]

SEQUENCES = (256, 128, 64, 32, 16)
"""max_num_seqs is lowered along this ladder until the model starts with certainty: fewer rows in the sampler. Then
CUDA graphs are given up, and the ladder is tried again, down to single requests."""
_FEW_SEQUENCES = (8, 4, 2, 1)
_CONTEXT_STEP = 256


def resolve_settings(model_spec: ResolvedModelSpec, split: ModelSplit, share: float) -> MemoryResult:
    """The best outcome; its `fits` says whether there is any."""
    best: MemoryResult | None = None
    for eager, seqs in _settings(model_spec):
        result = _in_weakest_order(_build_config(model_spec, split, share, seqs, eager))
        if result.fits_within_error:
            return result
        if best is None or _better(result, best):
            best = result
    assert best is not None
    if best.fits:
        return best
    return _uneven(replace(best.config, gpus=split.gpus)) or _shortened(model_spec, best) or best


def _settings(model_spec: ResolvedModelSpec) -> Iterator[tuple[bool, int]]:
    """enforce_eager and max_num_seqs, the best first; pins leave one of each."""
    eager, seqs = model_spec.declared.engine.get("enforce_eager"), model_spec.pinned_int("max_num_seqs")
    for without_graphs in (False, True) if eager is None else (bool(eager),):
        ladder = (*SEQUENCES, *_FEW_SEQUENCES) if without_graphs else SEQUENCES
        for most in (seqs,) if seqs else ladder:
            yield without_graphs, most


def _build_config(
    model_spec: ResolvedModelSpec, split: ModelSplit, share: float, seqs: int, eager: bool
) -> EngineConfig:
    return EngineConfig(
        model=model_spec.model,
        gpus=split.gpus,
        tp=split.tp,
        share=model_spec.utilization(share, split.gpu.memory_seen) / split.gpu.memory_seen,
        context=model_spec.context,
        seqs=seqs,
        tokens=model_spec.batched_tokens(split.gpu),
        kv_cache_dtype=str(model_spec.declared.engine.get("kv_cache_dtype") or "auto"),
        eager=eager,
        engine=model_spec.engine,
        partition=split.partition,
    )


def _better(result: MemoryResult, best: MemoryResult) -> bool:
    """One that fits before one that does not; among those that do not, the one that is least short."""
    return not best.fits and (result.fits or result.weakest.cache > best.weakest.cache)


def _in_weakest_order(config: EngineConfig) -> MemoryResult:
    """vLLM orders pipeline ranks itself, so over unlike cards each must hold every stage. The given order answers,
    unless another would fail. A pinned partition means this order."""
    kinds = {gpu.id: gpu for gpu in config.gpus}
    if len(kinds) == 1 or config.partition is not None:
        return evaluate(config)
    worst = min(
        (evaluate(replace(config, gpus=(gpu,) * config.pp)) for gpu in kinds.values()), key=lambda one: one.concurrency
    )
    return evaluate(config) if worst.fits else worst


def _uneven(config: EngineConfig) -> MemoryResult | None:
    """More layers on the larger card. Only over two hosts: the driver's comes first, so their order can be fixed by the
    placement of the first bundle, where three or more would follow Ray's random node ids."""
    if len(config.gpus) != 2 or config.gpus[0].id == config.gpus[1].id or config.partition is not None:
        return None
    layers = config.model.layers
    tried = (evaluate(replace(config, partition=(first, layers - first))) for first in range(1, layers))
    best = max(tried, key=lambda one: (one.blocks, one.weakest.cache))
    return best if best.fits else None


def _shortened(model_spec: ResolvedModelSpec, result: MemoryResult) -> MemoryResult | None:
    """The longest context that fits, where the fleet asked for none."""
    if model_spec.declared.context or not result.largest_context:
        return None
    context = floor(result.largest_context / _CONTEXT_STEP) * _CONTEXT_STEP
    lengths = model_spec.lengths
    if context < (_CONTEXT_STEP if lengths.assumed else lengths.prompt + lengths.answer):
        return None
    shorter = _in_weakest_order(replace(result.config, context=context))
    return shorter if shorter.fits else None
