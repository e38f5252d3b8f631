"""Memory of one GPU besides the KV cache, in bytes: weights, activations, non-torch memory, CUDA graphs.

vLLM's own formula: cache = share x memory - weights - activations - non-torch - graphs. Weights follow from the
architecture, the other terms from measured constants by version (`catalog.engines`), each with its error.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from rayhelm.facts.engines import EngineConstants
from rayhelm.facts.model import Checkpoint
from rayhelm.facts.tensors import Tensor, count_weights
from rayhelm.planner.memory.expert_padding import MARLIN, ExpertPadding, compute_experts_growth
from rayhelm.planner.memory.parallelism import find_partition
from rayhelm.planner.shape import ReplicaShape

__all__ = [
    "GIB",
    "Term",
    "count_rotary_table",
    "count_stage_weights",
    "estimate_activation",
    "estimate_cuda_graphs",
    "estimate_non_torch",
]

GIB = 2**30
_SPLIT_EXPERTS = ("experts.gate_up", "experts.down")
"""Tensors that the GPUs of a stage share."""
_ELEMENT = 2
"""Bytes of an activation: vLLM computes in 16 bits."""


@dataclass(frozen=True)
class Term:
    """One term of the memory of a GPU, and its error, bytes."""

    bytes: float
    error: float = 0.0


@dataclass(frozen=True)
class _Rank:
    """Weights of one tensor-parallel rank, bytes."""

    embedding: float
    layers_before: tuple[float, ...]
    """Of all layers before the n-th; one entry more than there are layers."""
    final: float
    tied_head: float
    """The embedding again, if the output head that shares it is on another stage."""


def count_stage_weights(
    model: Checkpoint, shape: ReplicaShape, engine: EngineConstants, padding: ExpertPadding = MARLIN
) -> tuple[float, ...]:
    """Return the bytes of weights on one GPU of each pipeline stage; with expert parallelism on one that has most
    experts. `padding`: of experts in MXFP4."""
    sharing = shape.expert_gpus if shape.has_expert_parallel else 0
    rank = _compute_rank(model, shape.tp, sharing, engine.vocabulary_padding, padding)
    stages, start = [], 0
    for layers in find_partition(model, shape):
        stages.append(rank.layers_before[start + layers] - rank.layers_before[start])
        start += layers
    stages[0] += rank.embedding
    stages[-1] += rank.final + (rank.tied_head if shape.pp > 1 else 0.0)
    return tuple(stages)


def count_rotary_table(model: Checkpoint) -> int:
    """Return the bytes of the cosines and sines of all positions, which each GPU holds once, for the longest context of
    the model and not for `max_model_len` (vllm 0.29 model_executor/layers/rotary_embedding/base.py)."""
    if not (model.causal and model.attention_layers) or model.engine == "custom" or model.stated or model.built:
        return 0
    mla = model.attention.mla
    return model.max_context * (mla.qk_rope_head_dim if mla else model.attention.head_dim) * _ELEMENT


@lru_cache(maxsize=4096)
def _compute_rank(model: Checkpoint, tp: int, expert_ranks: int, multiple: int, padding: ExpertPadding) -> _Rank:
    """Count the weights. `expert_ranks`: GPUs that share whole experts; 0 if each has a part of each expert."""
    if model.built and (built := model.built.find(tp)):
        spread = tuple(built.weights * layer / model.layers for layer in range(model.layers + 1))
        return _Rank(embedding=0.0, layers_before=spread, final=0.0, tied_head=0.0)
    whole = count_weights(model)
    padded = _pad(model.vocab, multiple) / model.vocab
    divisors = {"split": float(tp), "kv": float(min(tp, model.attention.kv_heads)), "vocab": tp / padded}
    whole_experts = model.experts if expert_ranks else None
    growth = compute_experts_growth(model, 1 if whole_experts else tp, padding)
    if whole_experts:
        # vLLM gives the first ranks one expert more if they cannot be divided evenly (determine_expert_map).
        growth *= -(-whole_experts.count // expert_ranks) * tp / whole_experts.count
    per_layer = {
        id(layer): _sum(layer, divisors)
        + (growth - 1) * _sum((tensor for tensor in layer if tensor.name in _SPLIT_EXPERTS), divisors)
        for layer in whole.layers
    }
    return _Rank(
        embedding=_sum(whole.embedding, divisors),
        layers_before=tuple(accumulate((per_layer[id(layer)] for layer in whole.layers), initial=0.0)),
        final=_sum((tensor for tensor in whole.final if tensor.parameters), divisors),
        tied_head=_sum((tensor for tensor in whole.final if not tensor.parameters), divisors),
    )


def estimate_activation(
    model: Checkpoint, shape: ReplicaShape, *, seqs: int, tokens: int, last_stage: bool, engine: EngineConstants
) -> Term:
    """Return the peak of the profile run: a forward pass of `tokens`, then, on the last stage, the sampler over `seqs`
    rows."""
    constants = engine.activation
    # The GPUs that share the experts exchange the tokens of all data parallel ranks, so each computes with all of them.
    expert_bytes = _count_expert_bytes(model, 1 if shape.has_expert_parallel else shape.tp) * shape.dp
    forward = constants.forward_scale.value * _count_forward_bytes(model, shape.tp, expert_bytes) * tokens
    forward_error = constants.forward_scale.error * forward
    if not last_stage or model.output != "vocabulary":
        return Term(forward, forward_error)
    rows = min(seqs, tokens)
    logits = rows * _pad(model.vocab, engine.vocabulary_padding)
    workspace = expert_bytes * tokens if constants.experts_workspace == "held" else 0.0
    # The profile run keeps the hidden states of all tokens, and a copy of those of the sampled rows.
    states = (tokens + rows) * model.hidden * _ELEMENT
    sampler = constants.sampler_bytes.value * logits + states + workspace
    peak_error = forward_error if forward > sampler else constants.sampler_bytes.error * logits
    kept = constants.sampler_state_bytes
    return Term(kept.value * logits + max(forward, sampler), kept.error * logits + peak_error)


def estimate_non_torch(shape: ReplicaShape, *, eager: bool, is_unified: bool, engine: EngineConstants) -> Term:
    """Return the memory outside PyTorch's allocator, and memory that torch.compile still holds after a cold start.

    `is_unified`: the GPU shares its memory with the CPU, whose page cache vLLM counts as used."""
    kinds = engine.non_torch
    constants = [kinds.tensor if shape.tp > 1 else kinds.pipeline if shape.pp > 1 else kinds.single]
    if not eager:
        constants.append(engine.compile_gib)
    if is_unified and engine.unified_gib:
        constants.append(engine.unified_gib)
    return Term(sum(each.value for each in constants) * GIB, sum(each.error for each in constants) * GIB)


def estimate_cuda_graphs(*, eager: bool, engine: EngineConstants) -> Term:
    """Return the memory of CUDA graphs that vLLM subtracts from the cache."""
    if eager or engine.cuda_graph_gib is None:
        return Term(0.0)
    return Term(engine.cuda_graph_gib.value * GIB, engine.cuda_graph_gib.error * GIB)


def _count_forward_bytes(model: Checkpoint, tp: int, expert_bytes: float) -> float:
    """Return bytes per token of the tensors that live at once in the widest layer: both halves of a gated MLP, their
    product, and the hidden states with residual and norm."""
    hidden = 3 * model.hidden * _ELEMENT
    wide = (3 if model.gated else 2) * model.intermediate / tp * _ELEMENT
    recurrent = 3 * model.recurrence.heads * model.recurrence.head_dim / tp * _ELEMENT if model.recurrence else 0.0
    return hidden + max(wide if _has_dense_layer(model) else 0.0, recurrent, expert_bytes)


def _count_expert_bytes(model: Checkpoint, tp: int) -> float:
    """Return bytes per token of the two buffers of fused experts, one row per active expert."""
    if model.experts is None:
        return 0.0
    wide = model.experts.intermediate / tp
    return model.experts.active * (max((2 if model.gated else 1) * wide, model.hidden) + wide) * _ELEMENT


def _has_dense_layer(model: Checkpoint) -> bool:
    return model.experts is None or model.experts.beside_dense or len(model.expert_layers) < model.layers


def _pad(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _sum(tensors: Iterable[Tensor], divisors: dict[str, float]) -> float:
    return sum(tensor.bytes / divisors.get(tensor.shard, 1.0) for tensor in tensors)
