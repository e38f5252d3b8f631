"""Placement candidates of one model: a split that fits, with its capacity. `choose` picks one."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace

from rayhelm.facts.tensors import count_weights
from rayhelm.planner.memory.accounting import MemoryResult
from rayhelm.planner.memory.parallelism import list_context_errors, list_split_errors
from rayhelm.planner.memory.quantization import find_dtype_error, find_quantization_error
from rayhelm.planner.placement.capacity import ReplicaCapacity, estimate_capacity
from rayhelm.planner.placement.cost import compute_cost
from rayhelm.planner.placement.inventory import PoolInventory
from rayhelm.planner.placement.kv_transfer import find_transfer_error
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.placement.model_splits import ModelSplit
from rayhelm.planner.placement.prefill_decode import estimate_prefill_decode
from rayhelm.planner.placement.resolve import MORE_SEQUENCES, SEQUENCES, ResolvedMemory
from rayhelm.planner.pool_use import GpuPart

__all__ = ["Candidate", "RejectedSplit", "evaluate_split", "find_least_share"]

SHARES = tuple(step / 20 for step in range(2, 20))
"""Fractions of a GPU that are tried for small models of one service: 0.10 to 0.95."""
IDLE_CONCURRENCY = 8
"""Requests at a time that a fraction must hold if the fleet file has no traffic."""
SEQUENCES_ON_TRUST = 32

Faults = tuple[bool, bool, bool, bool, bool]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A split that fits the model."""

    model_spec: ResolvedModelSpec
    split: ModelSplit
    share: float
    """Fraction of each GPU; 1.0 for whole GPUs."""
    max_num_seqs: int
    max_num_batched_tokens: int
    context: int
    memory: MemoryResult | None
    """None if memory cannot be computed: applications beside vLLM, and GPUs of unknown memory."""
    capacity: ReplicaCapacity
    faults: Faults = field(init=False, repr=False, compare=False)
    """The first criteria of `choose`, all False for a candidate without a fault: misses an objective, may not start,
    has a shorter context, runs on unofficial builds, has no CUDA graphs."""
    parts: list[GpuPart] = field(init=False, repr=False, compare=False, default_factory=list)
    """What its replicas use of GPUs, once they were allocated: the same on each pool."""
    memory_gib: float = field(init=False, repr=False, compare=False)
    """Memory of the GPUs of all replicas, or of its share of them, GiB."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "faults", self._list_faults())
        object.__setattr__(self, "memory_gib", self.split.memory_gib * self.share * self.replicas)

    def on_pool(self, inventory: PoolInventory) -> "Candidate":
        """Return the same candidate on another pool of its kind. What was computed once does not depend on the pool."""
        moved: Candidate = object.__new__(Candidate)
        for name in _FIELDS:
            object.__setattr__(moved, name, getattr(self, name))
        object.__setattr__(moved, "split", self.split.on_pool(inventory))
        return moved

    def _list_faults(self) -> Faults:
        return (
            not self.capacity.meets_slo,
            self.tight,
            self.context < self.model_spec.context,
            self.split.gpu.engine != "vllm",
            self.eager,
        )

    @property
    def tight(self) -> bool:
        return self.memory is not None and not self.memory.fits_within_error

    @property
    def eager(self) -> bool:
        return self.memory is not None and self.memory.config.eager

    @property
    def replicas(self) -> int:
        return self.capacity.replicas

    @property
    def utilization(self) -> float:
        return (
            self.share
            if self.model_spec.has_own_engine
            else self.model_spec.utilization(self.share, self.split.gpu.memory_seen)
        )

    @property
    def gpus(self) -> float:
        return self.replicas * self.split.whole_gpu_count * self.share

    @property
    def price_per_hour(self) -> float | None:
        price = self.split.price_per_hour
        return None if price is None else price * self.share * self.replicas

    def get_cost(self, by_price: bool) -> float:
        return compute_cost(self.price_per_hour, self.memory_gib, by_price=by_price)


_FIELDS = tuple(each.name for each in fields(Candidate))


@dataclass(frozen=True, slots=True)
class RejectedSplit:
    """A split that does not fit the model, and why."""

    split: ModelSplit
    why: str
    short_gib: float = 0.0
    """Missing memory on the weakest GPU, GiB; 0 if memory is not the reason."""


def evaluate_split(
    model_spec: ResolvedModelSpec, split: ModelSplit, memory: ResolvedMemory
) -> tuple[Candidate | RejectedSplit, ...]:
    """Return the candidate of a split, and the one on the smallest sufficient fraction of its GPU if the model may
    share it."""
    found = _evaluate(model_spec, split, model_spec.declared.gpu_fraction or 1.0, memory)
    if isinstance(found, RejectedSplit) or split.shape.gpu_count > 1 or not _may_share(model_spec):
        return (found,)
    return (found, *_list_shared(model_spec, split, found, memory))


def find_least_share(model_spec: ResolvedModelSpec) -> float:
    """Return the smallest fraction of each GPU that a candidate of the model can have."""
    return model_spec.declared.gpu_fraction or (SHARES[0] if _may_share(model_spec) else 1.0)


def _may_share(model_spec: ResolvedModelSpec) -> bool:
    """Return whether the planner may choose a GPU fraction. Not for other applications, whose working memory is
    unknown."""
    is_pinned = model_spec.declared.gpu_fraction is not None or model_spec.declared.parallelism is not None
    return model_spec.has_shared_service and not is_pinned and not model_spec.has_own_engine


def _list_shared(
    model_spec: ResolvedModelSpec, split: ModelSplit, whole: Candidate, memory: ResolvedMemory
) -> Iterator[Candidate]:
    """Yield the smallest fraction of the GPU that serves the load with as many replicas as the whole GPU."""
    for share in SHARES:
        found = _evaluate(model_spec, split, share, memory)
        if isinstance(found, Candidate) and _is_as_good(found, whole):
            yield found
            return


def _is_as_good(part: Candidate, whole: Candidate) -> bool:
    least = min(whole.capacity.concurrency, IDLE_CONCURRENCY) if part.model_spec.lengths.assumed else 1
    return (
        not part.tight
        and part.eager == whole.eager
        and part.context == whole.context
        and part.capacity.needed == whole.capacity.needed
        and part.capacity.meets_slo >= whole.capacity.meets_slo
        and part.capacity.concurrency >= least
    )


def _evaluate(
    model_spec: ResolvedModelSpec, split: ModelSplit, share: float, memory: ResolvedMemory
) -> Candidate | RejectedSplit:
    if split.whole_gpu_count * share >= model_spec.gpus_below:
        return RejectedSplit(
            split, f"`replicas.max` has no room for replicas of {split.whole_gpu_count * share:g} GPUs"
        )
    if share < 1 and split.shape.gpu_count > 1:
        return RejectedSplit(split, "a fraction of one GPU cannot be split over several GPUs")
    if model_spec.has_own_engine and split.gpu.memory_seen < 1:
        return RejectedSplit(
            split, "the GPU is time-sliced, and nothing limits the memory of an application beside vLLM"
        )
    if (used := model_spec.utilization(share, seen := split.gpu.memory_seen)) > seen:
        return RejectedSplit(split, f"gpu_memory_utilization {used:g} exceeds the engine's part of the GPU, {seen:.2g}")
    if against := list_split_errors(model_spec.model, split.shape, model_spec.engine):
        return RejectedSplit(split, "; ".join(against))
    if against := list_context_errors(
        model_spec.model, split.shape.tp, model_spec.pinned_int("decode_context_parallel_size") or 1
    ):
        return RejectedSplit(split, against[0])
    if reason := _find_quantization_error(model_spec, split):
        return RejectedSplit(split, reason)
    if not model_spec.has_own_engine and (
        reason := find_dtype_error(model_spec.declared.engine.get("dtype"), split.gpus)
    ):
        return RejectedSplit(split, reason)
    if model_spec.separates_prefill and (reason := find_transfer_error(model_spec, split)):
        return RejectedSplit(split, reason)
    if reason := _find_unknown(model_spec, split):
        return (
            _accept_unknown_memory(model_spec, split, share)
            if model_spec.declared.pool
            else RejectedSplit(split, reason)
        )
    return (
        _evaluate_weights(model_spec, split, share)
        if model_spec.has_own_engine
        else _evaluate_engine(model_spec, split, share, memory)
    )


def _find_quantization_error(model_spec: ResolvedModelSpec, split: ModelSplit) -> str:
    """Return why vLLM refuses the quantization of the model on one of the GPUs; empty if it does not, or if another
    server reads the checkpoint."""
    if model_spec.model.quantization is None or model_spec.has_own_engine:
        return ""
    kinds = {gpu.id: gpu for gpu in split.gpus}.values()
    errors = (find_quantization_error(model_spec.model, gpu, model_spec.engine) for gpu in kinds)
    return next(filter(None, errors), "")


def _find_unknown(model_spec: ResolvedModelSpec, split: ModelSplit) -> str:
    """Return why nothing can be computed on these GPUs; empty if something can."""
    for gpu in split.gpus:
        if gpu.engine == "none" and not model_spec.has_own_engine:
            notes = f": {gpu.notes}" if gpu.notes else ""
            return f"vLLM is not known to run on {gpu.id}{notes}"
        if gpu.usable_gib is None:
            own = f"{{mine: {{like: {gpu.id}, usableMemory: …}}}}"
            return f"the usable memory of {gpu.id} is unknown; `gpus` of the fleet file can say it: {own}"
    return ""


def _evaluate_engine(
    model_spec: ResolvedModelSpec, split: ModelSplit, share: float, memory: ResolvedMemory
) -> Candidate | RejectedSplit:
    """Evaluate a split with vLLM's own memory accounting."""
    result = memory.resolve(model_spec, split, share)
    if not result.fits:
        short = result.missing / 2**30
        size = f"{short:.1f} GiB" if short >= 0.1 else f"{max(1, round(short * 1024))} MiB"
        return RejectedSplit(split, f"{size} of memory are missing per GPU", short)
    if result.config.shape != split.shape:
        split = replace(split, shape=result.config.shape)
    found = _build_candidate(model_spec, split, share, result, memory)
    for seqs in MORE_SEQUENCES if _is_limited_by_sequences(found) else ():
        larger = memory.resolve(model_spec, split, share, seqs)
        if not larger.fits_within_error or found.capacity.bound_by != "max_num_seqs":
            break
        more = _build_candidate(model_spec, split, share, larger, memory)
        if more.capacity.needed < found.capacity.needed and more.capacity.meets_slo >= found.capacity.meets_slo:
            found = more
    return found


def _build_candidate(
    model_spec: ResolvedModelSpec, split: ModelSplit, share: float, result: MemoryResult, memory: ResolvedMemory
) -> Candidate:
    config = result.config
    if model_spec.separates_prefill:
        carried = estimate_prefill_decode(model_spec, split, result.tokens, config.seqs)
    else:
        ranks = split.shape.dp
        tokens, seqs = result.tokens * ranks or None, config.seqs * ranks
        carried = estimate_capacity(model_spec, split, share, tokens, seqs, memory.speeds)
    return Candidate(model_spec, split, share, config.seqs, config.tokens, config.context, result, carried)


def _is_limited_by_sequences(found: Candidate) -> bool:
    """Return whether more sequences than usual could save replicas."""
    is_usual = found.max_num_seqs == SEQUENCES[0] and not found.eager and not found.tight
    is_pinned = found.model_spec.pinned_int("max_num_seqs") is not None
    return is_usual and not is_pinned and found.capacity.bound_by == "max_num_seqs" and found.capacity.needed > 1


def _accept_unknown_memory(model_spec: ResolvedModelSpec, split: ModelSplit, share: float) -> Candidate:
    """Return the candidate of a model that is pinned to a GPU with unknown memory. The plan states that nothing was
    checked."""
    seqs, tokens = model_spec.pinned_int("max_num_seqs") or SEQUENCES_ON_TRUST, model_spec.batched_tokens(split.gpu)
    return Candidate(
        model_spec,
        split,
        share,
        seqs,
        tokens,
        model_spec.context,
        None,
        estimate_capacity(model_spec, split, share, None, seqs),
    )


def _evaluate_weights(model_spec: ResolvedModelSpec, split: ModelSplit, share: float) -> Candidate | RejectedSplit:
    """Return an application beside vLLM, on one GPU: only the size of the weights is known."""
    if split.shape.gpu_count > 1:
        return RejectedSplit(split, f"the application that serves {model_spec.model.id} uses one GPU")
    needed, there = count_weights(model_spec.model).bytes / 2**30, (split.gpu.usable_gib or 0) * share
    if needed > there:
        return RejectedSplit(split, f"weights of {needed:.1f} GiB, and the GPU has {there:.1f} GiB", needed - there)
    return Candidate(
        model_spec, split, share, 1, 1, model_spec.context, None, estimate_capacity(model_spec, split, share, None, 1)
    )
