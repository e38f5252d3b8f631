"""Terms of the speed model: what each part of a step would take at nominal rates, in seconds.

The fitted coefficients multiply them. One stage of one rank is counted at a time.
"""

from dataclasses import dataclass

from rayhelm.catalog.gpu import GpuKind
from rayhelm.planner.speed.assumptions import load_assumptions
from rayhelm.planner.speed.coefficients import SpeedCoefficients
from rayhelm.planner.speed.links import find_all_reduce_gb_per_s, has_fast_link
from rayhelm.planner.speed.shape import ReplicaShape

__all__ = ["StageBatch", "count_decode_terms", "count_prefill_terms", "list_missing_figures"]

_US = 1e-6
_BYTES = 2
"""Bytes of an activation."""


@dataclass(frozen=True)
class StageBatch:
    """What one stage of one rank computes in a step."""

    sequences: float
    context: float
    """Mean tokens in the cache of a sequence."""
    tokens: float
    """Decoded tokens; more than the sequences with speculative decoding."""
    prefill_tokens: float = 0.0
    """Prompt tokens that continuous batching mixes in."""
    prefill_pairs: float = 0.0
    """Pairs of tokens of which they compute the attention, with full attention."""
    prefill_window_pairs: float = 0.0
    """The same in layers with a sliding window."""


def list_missing_figures(gpu: GpuKind) -> tuple[str, ...]:
    """Return missing figures of a GPU without which speed cannot be estimated."""
    wanted = {"memory bandwidth": gpu.memory_bandwidth_gb_per_s, "16-bit TFLOP/s": gpu.bf16_tflops}
    return tuple(f"{what} of {gpu.id}" for what, figure in wanted.items() if figure is None)


def count_decode_terms(
    shape: ReplicaShape, gpu: GpuKind, batch: StageBatch, fitted: SpeedCoefficients
) -> dict[str, float]:
    """Return the terms of one decode step on one stage, by name of the coefficient."""
    model, work, tp, part = shape.model, shape.work, shape.tp, 1 / shape.pp
    bandwidth = (gpu.memory_bandwidth_gb_per_s or 0.0) * 1e9
    native = _is_native(gpu, work.expert_format)
    ranks, shards = _count_expert_ranks(shape)
    hit = _count_experts_hit(shape, batch.tokens * ranks)
    expert_bytes = work.expert_bytes * part * hit / model.experts.count if model.experts else 0.0
    expert_read = expert_bytes / shards / bandwidth
    calls = work.expert_layers * part * hit / ranks * _US
    full, windowed, window = _count_attention_layers(shape)
    cached = full * batch.context + windowed * min(batch.context, window)
    terms = {
        "dense_weights": work.dense_bytes * part / tp / bandwidth / fitted.memory_efficiency[work.dense_format],
        "expert_weights_native": expert_read / fitted.memory_efficiency["bf16_experts"] if native else 0.0,
        "expert_weights_converted": 0.0 if native else expert_read / fitted.memory_efficiency["converted_experts"],
        "kv_cache": batch.sequences * shape.kv_bytes_per_token * part * cached / model.layers / bandwidth,
        "decode_compute": _compute_dense(shape, gpu, batch.tokens, fitted),
        "sequence": batch.sequences * _US,
        "step": 1e-3,
        "layer": model.layers * part * _scale_with_width(shape) * _US,
        "latent_layer": model.layers * part * _US if model.attention.mla else 0.0,
        "expert_layer": work.expert_layers * part * _US,
        "expert_call_native": calls if native else 0.0,
        "expert_call_converted": 0.0 if native else calls,
        "all_reduce_calls": _count_all_reduce_calls(shape, gpu) * part * _US,
    }
    stolen = _count_prefill(shape, gpu, batch, fitted, extra=batch.tokens)
    return terms | {name: seconds * part for name, seconds in stolen.items()}


def count_prefill_terms(
    shape: ReplicaShape, gpu: GpuKind, batch: StageBatch, fitted: SpeedCoefficients
) -> dict[str, float]:
    """Return the terms of the time to first token on one stage, but for those of the queue."""
    model, work, part = shape.model, shape.work, 1 / shape.pp
    bandwidth = (gpu.memory_bandwidth_gb_per_s or 0.0) * 1e9
    native, (_, shards) = _is_native(gpu, work.expert_format), _count_expert_ranks(shape)
    prefill = _count_prefill(shape, gpu, batch, fitted, extra=0.0)
    expert = prefill.pop("expert_compute")
    terms = prefill | {
        "expert_compute_native": expert if native else 0.0,
        "expert_compute_converted": 0.0 if native else expert,
        "weights_read": (work.dense_bytes / shape.tp + work.expert_bytes / shards) / bandwidth,
        "layer": model.layers * 1e-3 * _scale_with_width(shape),
        "expert_layer": work.expert_layers * 1e-3,
        "latent_layer": model.layers * 1e-3 if model.attention.mla else 0.0,
        "tensor_layer": model.layers * 1e-3 if shape.tp > 1 else 0.0,
    }
    return {name: seconds * part for name, seconds in terms.items()}


def _count_prefill(
    shape: ReplicaShape, gpu: GpuKind, batch: StageBatch, fitted: SpeedCoefficients, extra: float
) -> dict[str, float]:
    """Return the terms of the prompt tokens of a batch, for all layers. `extra`: decoded tokens beside them."""
    model, work = shape.model, shape.work
    ranks, shards = _count_expert_ranks(shape)
    flops = _find_flops(gpu, work.expert_format) * fitted.compute_efficiency[work.expert_format]
    full, windowed, _ = _count_attention_layers(shape)
    pairs = full * batch.prefill_pairs + windowed * batch.prefill_window_pairs
    width = model.attention.heads * model.attention.head_dim
    tokens = batch.prefill_tokens + extra
    return {
        "prefill_compute": _compute_dense(shape, gpu, batch.prefill_tokens, fitted) * shape.pp,
        "expert_compute": 2 * work.expert_parameters * tokens * ranks / shards / flops,
        "attention": 2 * 4 * width * pairs / shape.tp / ((gpu.bf16_tflops or 0.0) * 1e12),
        "all_reduce_bytes": _count_all_reduce_bytes(shape, tokens) / (_find_group_rate(shape, gpu) * 1e9),
    }


def _compute_dense(shape: ReplicaShape, gpu: GpuKind, tokens: float, fitted: SpeedCoefficients) -> float:
    work = shape.work
    flops = _find_flops(gpu, work.dense_format) * fitted.compute_efficiency[work.dense_format]
    return 2 * work.dense_parameters * tokens / shape.tp / shape.pp / flops


def _is_native(gpu: GpuKind, weights: str) -> bool:
    """Return whether the GPU multiplies weights of this format; otherwise a kernel converts them first."""
    return {"bf16": True, "fp8": gpu.fp8, "fp4": bool(gpu.fp4_tflops)}.get(weights, False)


def _find_flops(gpu: GpuKind, weights: str) -> float:
    """Return dense FLOP/s for weights of this format; those that the GPU does not multiply are converted to 16 bits."""
    by_format = {"fp8": gpu.fp8_tflops if gpu.fp8 else None, "fp4": gpu.fp4_tflops}
    return (by_format.get(weights) or gpu.bf16_tflops or 0.0) * 1e12


def _count_expert_ranks(shape: ReplicaShape) -> tuple[int, int]:
    """Return the ranks whose tokens meet in the experts, and the GPUs over which one copy of the experts is split."""
    ranks = shape.dp if shape.has_expert_parallel else 1
    return ranks, shape.tp * ranks


def _count_experts_hit(shape: ReplicaShape, tokens: float) -> float:
    """Return the experts of a layer that a batch needs, with uniform routing."""
    if not (experts := shape.model.experts):
        return 0.0
    missed: float = (1.0 - experts.active / experts.count) ** max(tokens, 1.0)
    return experts.count * (1.0 - missed)


def _count_attention_layers(shape: ReplicaShape) -> tuple[int, int, int]:
    """Return the layers with full attention, those with a sliding window, and its tokens."""
    attention = shape.model.attention
    windowed = attention.windowed_layers
    return len(shape.model.attention_layers) - windowed, windowed, attention.sliding_window or shape.model.max_context


def _scale_with_width(shape: ReplicaShape) -> float:
    """Return the overhead of a layer, relative to one of a hidden size of 8192."""
    return float((shape.model.hidden / 8192) ** 0.5)


def _count_all_reduce_bytes(shape: ReplicaShape, tokens: float) -> float:
    """Return the bytes that one GPU sends: two all-reduces a layer, and with data-parallel ranks that share experts the
    exchange of all tokens before and after them."""
    moved = shape.model.layers * 2 * (shape.tp - 1) / shape.tp * 2 * tokens
    ranks, _ = _count_expert_ranks(shape)
    if ranks > 1:
        moved += shape.work.expert_layers * 2 * (ranks - 1) * tokens * 2
    return moved * shape.model.hidden * _BYTES


def _count_all_reduce_calls(shape: ReplicaShape, gpu: GpuKind) -> float:
    ranks, _ = _count_expert_ranks(shape)
    calls = (2 * shape.model.layers if shape.tp > 1 else 0) + (2 * shape.work.expert_layers if ranks > 1 else 0)
    return calls * (1.0 if has_fast_link(gpu, shape.tp * ranks) else load_assumptions().pcie_call_factor)


def _find_group_rate(shape: ReplicaShape, gpu: GpuKind) -> float:
    return find_all_reduce_gb_per_s(gpu, _count_expert_ranks(shape)[1])
