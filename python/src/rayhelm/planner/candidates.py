"""Everything that could serve one model: each split that fits, with what it carries. No choice is made here."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import floor

from rayhelm.catalog.engines import Engine
from rayhelm.catalog.gpu import Gpu
from rayhelm.catalog.model import Model
from rayhelm.catalog.tensors import weights
from rayhelm.planner.capacity import GENERATES, Capacity, capacity
from rayhelm.planner.evaluate import Ask, Outcome, evaluate
from rayhelm.planner.layout import objections
from rayhelm.planner.site import PoolSite
from rayhelm.planner.splits import Split, splits
from rayhelm.spec.models import ModelSpec

__all__ = ["Candidate", "Refusal", "Wish", "candidates", "utilization"]

SEQUENCES = (256, 128, 64, 32, 16)
"""max_num_seqs is lowered along this ladder until the model starts with certainty: fewer rows in the sampler. Then
CUDA graphs are given up, and the ladder is tried again, down to single requests."""
FEW_SEQUENCES = (8, 4, 2, 1)
SHARES = tuple(step / 20 for step in range(2, 20))
"""Shares of a card that are tried for small models of one service: 0.10 to 0.95."""
CONTEXT_STEP = 256


@dataclass(frozen=True)
class Wish:
    """What is asked for: a model of the fleet, resolved against the catalogue."""

    name: str
    service: str
    model: Model
    spec: ModelSpec
    engine: Engine
    shares_service: bool
    """Other models live in the same service, so that they can share a card."""

    @property
    def context(self) -> int:
        return self.spec.context or self.model.max_context

    def pinned_int(self, key: str) -> int | None:
        value = self.spec.engine.get(key)
        return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


@dataclass(frozen=True)
class Candidate:
    """A split that holds the model."""

    wish: Wish
    split: Split
    share: float
    """Of each card; 1.0 when whole."""
    utilization: float
    """gpu_memory_utilization."""
    max_num_seqs: int
    max_num_batched_tokens: int
    context: int
    outcome: Outcome | None
    """None for engines of one's own, whose memory is not accounted."""
    capacity: Capacity

    @property
    def tight(self) -> bool:
        return self.outcome is not None and not self.outcome.fits_by_the_band

    @property
    def replicas(self) -> int:
        pinned = self.wish.spec.replicas
        if isinstance(pinned, int):
            return pinned
        return min(max(self.capacity.replicas, pinned.min), pinned.max) if pinned else self.capacity.replicas

    @property
    def gpus(self) -> float:
        return self.replicas * self.split.cards * self.share

    @property
    def price_per_hour(self) -> float | None:
        price = self.split.price_per_hour
        return None if price is None else price * self.share * self.replicas


@dataclass(frozen=True)
class Refusal:
    """A split that does not hold the model, and why."""

    split: Split
    why: str
    short_gib: float = 0.0
    """How much memory is missing on the weakest card."""


def candidates(wish: Wish, site: PoolSite) -> Iterator[Candidate | Refusal]:
    """Everything in one pool. Larger pipelines of the same TP are not listed once one fits with certainty."""
    certain: set[tuple[int, tuple[str, ...]]] = set()
    for split in splits(wish.model, site, wish.engine, wish.spec.parallelism):
        key = (split.tp, tuple(host.name for host in split.hosts[:1]))
        if key in certain:
            continue
        found = _candidate(wish, split)
        if isinstance(found, Candidate) and not found.tight and found.context == wish.context:
            certain.add(key)
        yield found
        if isinstance(found, Candidate) and split.cards == 1 and _may_share(wish):
            yield from _shared(wish, split, found)


def _may_share(wish: Wish) -> bool:
    """An engine of one's own is not cut by arithmetic: its working memory is unknown."""
    asked = wish.spec.gpu_fraction is not None or wish.spec.parallelism is not None
    return wish.shares_service and not asked and wish.model.engine == "vllm"


def _shared(wish: Wish, split: Split, whole: Candidate) -> Iterator[Candidate]:
    """The smallest share of the card that serves the load as well as the whole card does."""
    for share in SHARES:
        found = _candidate(wish, split, share)
        if (
            isinstance(found, Candidate)
            and not found.tight
            and found.context == whole.context
            and found.replicas == whole.replicas
            and found.capacity.meets_slo >= whole.capacity.meets_slo
        ):
            yield found
            return


def _candidate(wish: Wish, split: Split, share: float | None = None) -> Candidate | Refusal:
    share = share or wish.spec.gpu_fraction or 1.0
    if share < 1 and split.cards > 1:
        return Refusal(split, "a share of one card cannot be split over several")
    if against := objections(wish.model, split.tp, split.pp, wish.engine):
        return Refusal(split, "; ".join(against))
    custom = wish.model.engine == "custom"
    if reason := _unknown_ground(split, custom):
        return _on_trust(wish, split, share) if wish.spec.pool else Refusal(split, reason)
    return _without_engine(wish, split, share) if custom else _with_engine(wish, split, share)


def _unknown_ground(split: Split, custom: bool) -> str:
    """Why nothing can be computed on these cards."""
    for gpu in split.gpus:
        if gpu.usable_gib is None:
            return f"the memory of {gpu.id} is unknown"
        if gpu.engine == "none" and not custom:
            return f"vLLM is not known to run on {gpu.id}"
    return ""


def _with_engine(wish: Wish, split: Split, share: float) -> Candidate | Refusal:
    part = utilization(wish, share)
    tokens = _batched_tokens(wish, split.gpu)
    best: Outcome | None = None
    for eager, seqs in _settings(wish):
        outcome = _weakest_order(_ask(wish, split, part, seqs, tokens, eager))
        if outcome.fits_by_the_band:
            best = outcome
            break
        if best is None or _better(outcome, best):
            best = outcome
    assert best is not None
    if not best.fits and (uneven := _uneven(replace(best.ask, gpus=split.gpus), wish)):
        best = uneven
    if not best.fits and (shorter := _shortened(wish, best)):
        best = shorter
    if not best.fits:
        weakest = best.weakest
        needed = (best.request_blocks + wish.engine.null_block) * weakest.block
        short = (needed - weakest.cache) / 2**30
        return Refusal(split, f"{short:.1f} GiB short per card", short)
    return _measured(wish, split, share, part, best)


def _settings(wish: Wish) -> Iterator[tuple[bool, int]]:
    """enforce_eager and max_num_seqs, the best first; pins leave one of each."""
    eager, seqs = wish.spec.engine.get("enforce_eager"), wish.pinned_int("max_num_seqs")
    for without_graphs in (False, True) if eager is None else (bool(eager),):
        ladder = (*SEQUENCES, *FEW_SEQUENCES) if without_graphs else SEQUENCES
        for most in (seqs,) if seqs else ladder:
            yield without_graphs, most


def _better(outcome: Outcome, best: Outcome) -> bool:
    """One that fits before one that does not; among those that do not, the one that is least short."""
    return not best.fits and (outcome.fits or outcome.weakest.cache > best.weakest.cache)


def _weakest_order(ask: Ask) -> Outcome:
    """vLLM orders pipeline ranks by address, so over unlike cards each must hold every stage. The given order answers,
    unless another would fail."""
    kinds = {gpu.id: gpu for gpu in ask.gpus}
    if len(kinds) == 1:
        return evaluate(ask)
    worst = min(
        (evaluate(replace(ask, gpus=(gpu,) * ask.pp)) for gpu in kinds.values()), key=lambda one: one.concurrency
    )
    return evaluate(ask) if worst.fits else worst


def _uneven(ask: Ask, wish: Wish) -> Outcome | None:
    """More layers on the larger card. Only over two hosts: the driver's comes first, so their order can be fixed by the
    placement of the first bundle, where three or more would be ordered by address."""
    if len(ask.gpus) != 2 or len(set(ask.gpus)) == 1 or ask.partition is not None:
        return None
    layers = wish.model.layers
    tried = (evaluate(replace(ask, partition=(first, layers - first))) for first in range(1, layers))
    best = max(tried, key=lambda outcome: (outcome.blocks, outcome.weakest.cache))
    return best if best.fits else None


def _measured(wish: Wish, split: Split, share: float, part: float, outcome: Outcome) -> Candidate:
    ask = outcome.ask
    if ask.partition != split.partition:
        split = replace(split, partition=ask.partition)
    carried = capacity(
        wish.model, split, wish.spec, wish.engine, outcome.tokens or None, ask.seqs, ask.kv_cache_dtype, share
    )
    return Candidate(wish, split, share, part, ask.seqs, ask.tokens, ask.context, outcome, carried)


def _shortened(wish: Wish, outcome: Outcome) -> Outcome | None:
    """The longest context that fits, where the fleet asked for none."""
    if wish.spec.context or not outcome.largest_context:
        return None
    context = floor(outcome.largest_context / CONTEXT_STEP) * CONTEXT_STEP
    traffic = wish.spec.traffic
    if context < (traffic.input_tokens + (traffic.output_tokens or 0) if traffic else CONTEXT_STEP):
        return None
    return _weakest_order(replace(outcome.ask, context=context))


def _ask(wish: Wish, split: Split, part: float, seqs: int, tokens: int, eager: bool) -> Ask:
    return Ask(
        model=wish.model,
        gpus=split.gpus,
        tp=split.tp,
        share=part,
        context=min(wish.context, wish.model.max_context),
        seqs=seqs,
        tokens=tokens,
        kv_cache_dtype=str(wish.spec.engine.get("kv_cache_dtype") or "auto"),
        eager=eager,
        engine=wish.engine,
        partition=split.partition,
    )


def utilization(wish: Wish, share: float) -> float:
    """vLLM's own share of the card, of the part that the model may use."""
    pinned = wish.spec.engine.get("gpu_memory_utilization")
    if isinstance(pinned, float):
        return pinned
    return floor(wish.engine.gpu_memory_utilization * share * 100) / 100


def _batched_tokens(wish: Wish, gpu: Gpu) -> int:
    """vLLM's default for the card; models that do not generate take a whole input in one batch."""
    if pinned := wish.pinned_int("max_num_batched_tokens"):
        return pinned
    usual = wish.engine.defaults_for(gpu).max_num_batched_tokens
    return usual if wish.spec.task in GENERATES else max(usual, min(wish.context, wish.model.max_context))


def _on_trust(wish: Wish, split: Split, share: float) -> Candidate:
    """Pinned to a card of which too little is known: taken as asked, and the plan says that nothing was checked."""
    seqs, tokens = wish.pinned_int("max_num_seqs") or SEQUENCES[3], _batched_tokens(wish, split.gpu)
    context = min(wish.context, wish.model.max_context)
    carried = capacity(wish.model, split, wish.spec, wish.engine, None, seqs, "auto", share)
    return Candidate(wish, split, share, utilization(wish, share), seqs, tokens, context, None, carried)


def _without_engine(wish: Wish, split: Split, share: float) -> Candidate | Refusal:
    """An application of one's own: only its weights are known."""
    held = weights(wish.model).bytes / 2**30
    there = (split.gpu.usable_gib or 0) * share
    if held > there:
        return Refusal(split, f"weights of {held:.1f} GiB on {there:.1f} GiB", held - there)
    carried = capacity(wish.model, split, wish.spec, wish.engine, None, 1, "auto", share)
    return Candidate(wish, split, share, share, 1, 1, min(wish.context, wish.model.max_context), None, carried)
