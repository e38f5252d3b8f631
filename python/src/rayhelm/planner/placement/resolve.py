"""Resolve the engine settings of a split: the first of a list of settings with which the model fits."""

from collections.abc import Hashable, Iterator
from dataclasses import replace
from math import floor

from rayhelm.planner.memory.accounting import EngineConfig, MemoryResult, evaluate
from rayhelm.planner.memory.engine_defaults import build_engine_config
from rayhelm.planner.memory.engine_settings import EngineSettings
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.placement.model_splits import ModelSplit
from rayhelm.planner.placement.replica_speed import KnownSpeeds

__all__ = ["MORE_SEQUENCES", "SEQUENCES", "ResolvedMemory", "find_longest_context", "resolve_settings"]

SEQUENCES = (256, 128, 64, 32, 16)
"""Values of max_num_seqs, tried in order until the model fits with certainty: fewer sequences need less memory in the
sampler. Then the list is tried again without CUDA graphs, down to single requests."""
MORE_SEQUENCES = (512, 1024)
"""Tried where 256 limit a replica. 1,024 is vLLM's own value on GPUs with 70 GiB and more."""
_FEW_SEQUENCES = (8, 4, 2, 1)
_CONTEXT_STEP = 256


class ResolvedMemory:
    """Results of `resolve_settings` of one plan. Many models of a fleet have the same checkpoint and settings."""

    def __init__(self) -> None:
        self._found: dict[Hashable, MemoryResult] = {}
        self.speeds = KnownSpeeds()
        """What was computed with these settings."""

    def resolve(
        self, model_spec: ResolvedModelSpec, split: ModelSplit, share: float, seqs: int | None = None
    ) -> MemoryResult:
        """Return the memory with the best settings, or with CUDA graphs and this max_num_seqs."""
        spec = model_spec.declared
        key = (
            id(model_spec.model),
            tuple(id(gpu) for gpu in split.gpus),
            (split.shape, share, seqs),
            (spec.context, None if spec.context else model_spec.lengths, model_spec.generates),
            repr(sorted(spec.engine.items())),
            model_spec.adapters,
        )
        if key not in self._found:
            self._found[key] = (
                _evaluate(model_spec, split, replace(model_spec.settings_on(split.gpu, share), seqs=seqs))
                if seqs
                else resolve_settings(model_spec, split, share)
            )
        return self._found[key]


def resolve_settings(model_spec: ResolvedModelSpec, split: ModelSplit, share: float) -> MemoryResult:
    """Return the memory with the best settings. Its `fits` is False if none fit."""
    best: MemoryResult | None = None
    settings = model_spec.settings_on(split.gpu, share)
    for eager, seqs in _list_settings(model_spec):
        result = _evaluate(model_spec, split, replace(settings, eager=eager, seqs=seqs))
        if result.fits_within_error:
            return result
        if best is None or _is_better(result, best):
            best = result
    assert best is not None
    if best.fits:
        return best
    return _try_uneven_layers(replace(best.config, gpus=split.gpus)) or _try_shorter_context(model_spec, best) or best


def find_longest_context(model_spec: ResolvedModelSpec, split: ModelSplit, share: float) -> MemoryResult | None:
    """Return the memory with the longest context with which the model fits, by any of the settings that are tried;
    None if none fits. Of settings with the same context the best ones count."""
    longest: MemoryResult | None = None
    settings = model_spec.settings_on(split.gpu, share)
    for eager, seqs in _list_settings(model_spec):
        found = _evaluate(model_spec, split, replace(settings, eager=eager, seqs=seqs))
        if (context := found.largest_context) > (longest.config.context if longest else 0):
            result = _evaluate_weakest_order(replace(found.config, context=context))
            longest = result if result.fits else longest
    return longest


def _evaluate(model_spec: ResolvedModelSpec, split: ModelSplit, settings: EngineSettings) -> MemoryResult:
    config = build_engine_config(model_spec.model, split.gpus, split.shape, settings, model_spec.engine)
    return _evaluate_weakest_order(config)


def _list_settings(model_spec: ResolvedModelSpec) -> Iterator[tuple[bool, int]]:
    """Yield the values of enforce_eager and max_num_seqs to try, the best first; only pinned values if they are
    pinned."""
    eager, seqs = model_spec.declared.engine.get("enforce_eager"), model_spec.pinned_int("max_num_seqs")
    for without_graphs in (False, True) if eager is None else (bool(eager),):
        ladder = (*SEQUENCES, *_FEW_SEQUENCES) if without_graphs else SEQUENCES
        for most in (seqs,) if seqs else ladder:
            yield without_graphs, most


def _is_better(result: MemoryResult, best: MemoryResult) -> bool:
    """Return a result that fits before one that does not, then the one with more cache."""
    return not best.fits and (result.fits or result.weakest.cache > best.weakest.cache)


def _evaluate_weakest_order(config: EngineConfig) -> MemoryResult:
    """Return the result of the given order, or of an order that does not fit. vLLM orders pipeline ranks itself, so
    each kind of GPU must hold every stage. A pinned partition implies the given order."""
    kinds = {gpu.id: gpu for gpu in config.gpus}
    if len(kinds) == 1 or config.shape.partition is not None:
        return evaluate(config)
    stages = config.shape.pp
    worst = min(
        (evaluate(replace(config, gpus=(gpu,) * stages)) for gpu in kinds.values()), key=lambda one: one.concurrency
    )
    return evaluate(config) if worst.fits else worst


def _try_uneven_layers(config: EngineConfig) -> MemoryResult | None:
    """Try more layers on the larger GPU. Only for two hosts: the driver's host is stage 0, so the first bundle fixes
    the order. With three or more hosts, Ray orders the others by random node ids."""
    shape, layers = config.shape, config.model.layers
    if shape.pp != 2 or config.gpus[0].id == config.gpus[1].id or shape.partition is not None:
        return None
    shapes = (replace(shape, partition=(first, layers - first)) for first in range(1, layers))
    tried = (evaluate(replace(config, shape=each)) for each in shapes)
    best = max(tried, key=lambda one: (one.blocks, one.weakest.cache))
    return best if best.fits else None


def _try_shorter_context(model_spec: ResolvedModelSpec, result: MemoryResult) -> MemoryResult | None:
    """Return the result with the longest context that fits, if the fleet file sets none; None if that context is too
    short for the load."""
    if model_spec.declared.context or not result.largest_context:
        return None
    context = floor(result.largest_context / _CONTEXT_STEP) * _CONTEXT_STEP
    lengths = model_spec.lengths
    if context < (_CONTEXT_STEP if lengths.assumed else lengths.prompt + lengths.answer):
        return None
    shorter = _evaluate_weakest_order(replace(result.config, context=context))
    return shorter if shorter.fits else None
