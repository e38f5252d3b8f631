"""Everything that could serve one model: each split that fits, with what it carries. No choice is made here."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rayhelm.catalog.tensors import weights
from rayhelm.planner.memory.accounting import Outcome
from rayhelm.planner.memory.parallelism import objections
from rayhelm.planner.placement.capacity import Capacity, capacity
from rayhelm.planner.placement.inventory import PoolSite
from rayhelm.planner.placement.model_spec import Wish
from rayhelm.planner.placement.model_splits import Split, splits
from rayhelm.planner.placement.resolve import settle

__all__ = ["Candidate", "Refusal", "candidates"]

SHARES = tuple(step / 20 for step in range(2, 20))
"""Shares of a card that are tried for small models of one service: 0.10 to 0.95."""
IDLE_CONCURRENCY = 8
"""Requests that a share has to hold at once where the fleet says nothing of the load."""
SEQUENCES_ON_TRUST = 32


@dataclass(frozen=True)
class Candidate:
    """A split that holds the model."""

    wish: Wish
    split: Split
    share: float
    """Of each card; 1.0 when whole."""
    max_num_seqs: int
    max_num_batched_tokens: int
    context: int
    outcome: Outcome | None
    """None where memory cannot be accounted: engines of one's own, cards that nobody knows."""
    capacity: Capacity

    @property
    def tight(self) -> bool:
        return self.outcome is not None and not self.outcome.fits_by_the_band

    @property
    def eager(self) -> bool:
        return self.outcome is not None and self.outcome.ask.eager

    @property
    def replicas(self) -> int:
        return self.capacity.replicas

    @property
    def utilization(self) -> float:
        return self.share if self.wish.own_engine else self.wish.utilization(self.share, self.split.gpu.memory_seen)

    @property
    def gpus(self) -> float:
        return self.replicas * self.split.whole_cards * self.share

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
    """Everything in one pool. Longer pipelines of the same TP are left out once one fits as asked, with certainty."""
    enough: dict[int, int] = {}
    for split in splits(wish.model, site, wish.engine, wish.spec.parallelism):
        if split.pp > enough.get(split.tp, split.pp):
            continue
        found = _candidate(wish, split, wish.spec.gpu_fraction or 1.0)
        yield found
        if isinstance(found, Refusal):
            continue
        if not found.tight and not found.eager and found.context == wish.context and split.there_is_room:
            enough[split.tp] = split.pp
        if split.cards == 1 and _may_share(wish):
            yield from _shared(wish, split, found)


def _may_share(wish: Wish) -> bool:
    """An engine of one's own is not cut by arithmetic: its working memory is unknown."""
    asked = wish.spec.gpu_fraction is not None or wish.spec.parallelism is not None
    return wish.shares_service and not asked and not wish.own_engine


def _shared(wish: Wish, split: Split, whole: Candidate) -> Iterator[Candidate]:
    """The smallest share of the card that serves the load as well as the whole card does."""
    for share in SHARES:
        found = _candidate(wish, split, share)
        if isinstance(found, Candidate) and _as_good(found, whole):
            yield found
            return


def _as_good(part: Candidate, whole: Candidate) -> bool:
    least = min(whole.capacity.concurrency, IDLE_CONCURRENCY) if part.wish.lengths.assumed else 1
    return (
        not part.tight
        and part.eager == whole.eager
        and part.context == whole.context
        and part.capacity.needed == whole.capacity.needed
        and part.capacity.meets_slo >= whole.capacity.meets_slo
        and part.capacity.concurrency >= least
    )


def _candidate(wish: Wish, split: Split, share: float) -> Candidate | Refusal:
    if share < 1 and split.cards > 1:
        return Refusal(split, "a share of one card cannot be split over several")
    if wish.own_engine and split.gpu.memory_seen < 1:
        return Refusal(split, "nothing bounds the memory of an application of its own beside others on the card")
    if (told := wish.utilization(share, seen := split.gpu.memory_seen)) > seen:
        return Refusal(split, f"an engine that takes {told:g} of a card takes its neighbours' {1 - seen:.2g}")
    if against := objections(wish.model, split.tp, split.pp, wish.engine):
        return Refusal(split, "; ".join(against))
    if reason := _unknown_ground(wish, split):
        return _on_trust(wish, split, share) if wish.spec.pool else Refusal(split, reason)
    return _by_weights(wish, split, share) if wish.own_engine else _by_engine(wish, split, share)


def _unknown_ground(wish: Wish, split: Split) -> str:
    """Why nothing can be computed on these cards."""
    for gpu in split.gpus:
        if gpu.usable_gib is None:
            return f"the memory of {gpu.id} is unknown"
        if gpu.engine == "none" and not wish.own_engine:
            return f"vLLM is not known to run on {gpu.id}"
    return ""


def _by_engine(wish: Wish, split: Split, share: float) -> Candidate | Refusal:
    """By vLLM's own accounting."""
    outcome = settle(wish, split, share)
    if not outcome.fits:
        weakest = outcome.weakest
        needed = (outcome.request_blocks + wish.engine.null_block) * weakest.block
        short = (needed - weakest.cache) / 2**30
        return Refusal(split, f"{short:.1f} GiB short per card", short)
    ask = outcome.ask
    if ask.partition != split.partition:
        split = replace(split, partition=ask.partition)
    carried = capacity(wish, split, share, outcome.tokens or None, ask.seqs)
    return Candidate(wish, split, share, ask.seqs, ask.tokens, ask.context, outcome, carried)


def _on_trust(wish: Wish, split: Split, share: float) -> Candidate:
    """Pinned to a card of which too little is known: taken as asked, and the plan says that nothing was checked."""
    seqs, tokens = wish.pinned_int("max_num_seqs") or SEQUENCES_ON_TRUST, wish.batched_tokens(split.gpu)
    return Candidate(wish, split, share, seqs, tokens, wish.context, None, capacity(wish, split, share, None, seqs))


def _by_weights(wish: Wish, split: Split, share: float) -> Candidate | Refusal:
    """An application of one's own, on one card: only its weights are known."""
    if split.cards > 1:
        return Refusal(split, f"{wish.model.id} is served by an application that knows one card")
    held, there = weights(wish.model).bytes / 2**30, (split.gpu.usable_gib or 0) * share
    if held > there:
        return Refusal(split, f"weights of {held:.1f} GiB on {there:.1f} GiB", held - there)
    return Candidate(wish, split, share, 1, 1, wish.context, None, capacity(wish, split, share, None, 1))
