"""Finds the settings with which a model starts on a split: the first of a ladder that fits with certainty."""

from collections.abc import Iterator
from dataclasses import replace
from math import floor

from rayhelm.planner.memory.accounting import Ask, Outcome, evaluate
from rayhelm.planner.placement.model_spec import Wish
from rayhelm.planner.placement.model_splits import Split

__all__ = ["SEQUENCES", "settle"]

SEQUENCES = (256, 128, 64, 32, 16)
"""max_num_seqs is lowered along this ladder until the model starts with certainty: fewer rows in the sampler. Then
CUDA graphs are given up, and the ladder is tried again, down to single requests."""
_FEW_SEQUENCES = (8, 4, 2, 1)
_CONTEXT_STEP = 256


def settle(wish: Wish, split: Split, share: float) -> Outcome:
    """The best outcome; its `fits` says whether there is any."""
    best: Outcome | None = None
    for eager, seqs in _settings(wish):
        outcome = _in_weakest_order(_ask(wish, split, share, seqs, eager))
        if outcome.fits_by_the_band:
            return outcome
        if best is None or _better(outcome, best):
            best = outcome
    assert best is not None
    if best.fits:
        return best
    return _uneven(replace(best.ask, gpus=split.gpus)) or _shortened(wish, best) or best


def _settings(wish: Wish) -> Iterator[tuple[bool, int]]:
    """enforce_eager and max_num_seqs, the best first; pins leave one of each."""
    eager, seqs = wish.spec.engine.get("enforce_eager"), wish.pinned_int("max_num_seqs")
    for without_graphs in (False, True) if eager is None else (bool(eager),):
        ladder = (*SEQUENCES, *_FEW_SEQUENCES) if without_graphs else SEQUENCES
        for most in (seqs,) if seqs else ladder:
            yield without_graphs, most


def _ask(wish: Wish, split: Split, share: float, seqs: int, eager: bool) -> Ask:
    return Ask(
        model=wish.model,
        gpus=split.gpus,
        tp=split.tp,
        share=wish.utilization(share, split.gpu.memory_seen) / split.gpu.memory_seen,
        context=wish.context,
        seqs=seqs,
        tokens=wish.batched_tokens(split.gpu),
        kv_cache_dtype=str(wish.spec.engine.get("kv_cache_dtype") or "auto"),
        eager=eager,
        engine=wish.engine,
        partition=split.partition,
    )


def _better(outcome: Outcome, best: Outcome) -> bool:
    """One that fits before one that does not; among those that do not, the one that is least short."""
    return not best.fits and (outcome.fits or outcome.weakest.cache > best.weakest.cache)


def _in_weakest_order(ask: Ask) -> Outcome:
    """vLLM orders pipeline ranks itself, so over unlike cards each must hold every stage. The given order answers,
    unless another would fail. A pinned partition means this order."""
    kinds = {gpu.id: gpu for gpu in ask.gpus}
    if len(kinds) == 1 or ask.partition is not None:
        return evaluate(ask)
    worst = min(
        (evaluate(replace(ask, gpus=(gpu,) * ask.pp)) for gpu in kinds.values()), key=lambda one: one.concurrency
    )
    return evaluate(ask) if worst.fits else worst


def _uneven(ask: Ask) -> Outcome | None:
    """More layers on the larger card. Only over two hosts: the driver's comes first, so their order can be fixed by the
    placement of the first bundle, where three or more would follow Ray's random node ids."""
    if len(ask.gpus) != 2 or ask.gpus[0].id == ask.gpus[1].id or ask.partition is not None:
        return None
    layers = ask.model.layers
    tried = (evaluate(replace(ask, partition=(first, layers - first))) for first in range(1, layers))
    best = max(tried, key=lambda outcome: (outcome.blocks, outcome.weakest.cache))
    return best if best.fits else None


def _shortened(wish: Wish, outcome: Outcome) -> Outcome | None:
    """The longest context that fits, where the fleet asked for none."""
    if wish.spec.context or not outcome.largest_context:
        return None
    context = floor(outcome.largest_context / _CONTEXT_STEP) * _CONTEXT_STEP
    lengths = wish.lengths
    if context < (_CONTEXT_STEP if lengths.assumed else lengths.prompt + lengths.answer):
        return None
    shorter = _in_weakest_order(replace(outcome.ask, context=context))
    return shorter if shorter.fits else None
