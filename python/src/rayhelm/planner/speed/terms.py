"""Terms of the speed model: what each part of a step would take at nominal rates, in seconds.

The fitted coefficients multiply them. One stage of one rank is counted at a time.
"""

from dataclasses import dataclass

from rayhelm.facts.gpu import GpuKind
from rayhelm.planner.speed.assumptions import load_assumptions
from rayhelm.planner.speed.coefficients import SpeedCoefficients
from rayhelm.planner.speed.links import find_all_reduce_gb_per_s, has_fast_link
from rayhelm.planner.speed.shape import ReplicaShape

__all__ = [
    "StageBatch",
    "count_decode_terms",
    "count_experts_hit",
    "count_prefill_terms",
    "count_units",
    "find_least_step_s",
    "list_decode_rates",
    "list_missing_figures",
]

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


Rates = dict[str, dict[str, float]]
"""Seconds of each term per unit of what a step computes, by unit of `count_units` and name of the coefficient."""


def count_decode_terms(
    shape: ReplicaShape, gpu: GpuKind, batch: StageBatch, fitted: SpeedCoefficients
) -> dict[str, float]:
    """Return the terms of one decode step on one stage, by name of the coefficient."""
    units = count_units(shape, batch)
    rates = list_decode_rates(shape, gpu, fitted)
    return {name: rate * units[unit] for unit, of_unit in rates.items() for name, rate in of_unit.items()}


def count_units(shape: ReplicaShape, batch: StageBatch) -> dict[str, float]:
    """Return what a batch computes. Without `step` and `experts_hit`, it grows linearly with each figure of the
    batch."""
    full, windowed, window = _count_attention_layers(shape)
    return {
        "step": 1.0,
        "experts_hit": count_experts_hit(shape, batch.tokens),
        "sequences": batch.sequences,
        "cached_tokens": batch.sequences * (full * batch.context + windowed * min(batch.context, window)),
        "tokens": batch.tokens,
        "prefill_tokens": batch.prefill_tokens,
        "all_tokens": batch.tokens + batch.prefill_tokens,
        "pairs": full * batch.prefill_pairs + windowed * batch.prefill_window_pairs,
    }


def list_decode_rates(shape: ReplicaShape, gpu: GpuKind, fitted: SpeedCoefficients) -> Rates:
    """Return the rates of a decode step on one stage. Cached tokens and pairs are counted in each layer."""
    model, work, tp, part = shape.model, shape.work, shape.tp, 1 / shape.pp
    bandwidth = (gpu.memory_bandwidth_gb_per_s or 0.0) * 1e9
    native = _is_native(gpu, work.expert_format)
    ranks, shards = _count_expert_ranks(shape)
    expert_bytes = work.expert_bytes * part / model.experts.count if model.experts else 0.0
    expert_read = expert_bytes / shards / bandwidth
    calls = work.expert_layers * part / ranks * _US
    dense = _compute_dense(shape, gpu, 1.0, fitted)
    prompt = _list_prefill_rates(shape, gpu, fitted)
    return {
        "step": {
            "dense_weights": work.dense_bytes * part / tp / bandwidth / fitted.memory_efficiency[work.dense_format],
            "step": 1e-3,
            "layer": model.layers * part * _scale_decode_layer(shape) * _US,
            "latent_layer": model.layers * part * _US if model.attention.mla else 0.0,
            "expert_layer": work.expert_layers * part * _US,
            "all_reduce_calls": _count_all_reduce_calls(shape, gpu) * part * _US,
        },
        "experts_hit": {
            "expert_weights_native": expert_read / fitted.memory_efficiency["bf16_experts"] if native else 0.0,
            "expert_weights_converted": 0.0 if native else expert_read / fitted.memory_efficiency["converted_experts"],
            "expert_call_native": calls if native else 0.0,
            "expert_call_converted": 0.0 if native else calls,
        },
        "cached_tokens": {"kv_cache": shape.kv_bytes_per_token * part / model.layers / bandwidth},
        "tokens": {
            "decode_compute": dense,
            "all_reduce_small": _count_small_all_reduce_bytes(shape, gpu) * part / (_find_group_rate(shape, gpu) * 1e9),
        },
        "sequences": {"sequence": _US},
        **{unit: {name: rate * part for name, rate in rates.items()} for unit, rates in prompt.items()},
    }


def find_least_step_s(shape: ReplicaShape, gpu: GpuKind, batch: StageBatch) -> float:
    """Return the time in which the memory of a GPU delivers what a decode step needs at least: the weights, those of as
    few experts as one token needs, and the cache."""
    work, experts = shape.work, shape.model.experts
    _, shards = _count_expert_ranks(shape)
    expert_bytes = work.expert_bytes * experts.active / experts.count / shards if experts else 0.0
    cached = shape.kv_bytes_per_token / shape.model.layers * count_units(shape, batch)["cached_tokens"]
    read = work.dense_bytes / shape.tp + expert_bytes + cached
    return read / shape.pp / ((gpu.memory_bandwidth_gb_per_s or 0.0) * 1e9)


def count_prefill_terms(
    shape: ReplicaShape, gpu: GpuKind, batch: StageBatch, fitted: SpeedCoefficients
) -> dict[str, float]:
    """Return the terms of the time to first token on one stage, but for those of the queue."""
    model, work, part = shape.model, shape.work, 1 / shape.pp
    bandwidth = (gpu.memory_bandwidth_gb_per_s or 0.0) * 1e9
    native, (_, shards) = _is_native(gpu, work.expert_format), _count_expert_ranks(shape)
    units = count_units(shape, batch)
    rates = _list_prefill_rates(shape, gpu, fitted)
    prefill = {name: rate * units[unit] for unit, of_unit in rates.items() for name, rate in of_unit.items()}
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


def _list_prefill_rates(shape: ReplicaShape, gpu: GpuKind, fitted: SpeedCoefficients) -> Rates:
    """Return the rates of prompt tokens, and of decoded tokens beside them, for all layers."""
    model, work = shape.model, shape.work
    ranks, shards = _count_expert_ranks(shape)
    flops = _find_flops(gpu, work.expert_format) * fitted.compute_efficiency[work.expert_format]
    width = model.attention.heads * model.attention.head_dim
    return {
        "prefill_tokens": {
            "prefill_compute": _compute_dense(shape, gpu, 1.0, fitted) * shape.pp,
            "all_reduce_bytes": _count_all_reduce_bytes(shape) / (_find_group_rate(shape, gpu) * 1e9),
        },
        "all_tokens": {"expert_compute": 2 * work.expert_parameters * ranks / shards / flops},
        "pairs": {"attention": 2 * 4 * width / shape.tp / ((gpu.bf16_tflops or 0.0) * 1e12)},
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


def count_experts_hit(shape: ReplicaShape, tokens: float) -> float:
    """Return the experts of a layer that a batch of `tokens` on each rank needs, with uniform routing."""
    if not (experts := shape.model.experts):
        return 0.0
    ranks, _ = _count_expert_ranks(shape)
    missed: float = (1.0 - experts.active / experts.count) ** max(tokens * ranks, 1.0)
    return experts.count * (1.0 - missed)


def _count_attention_layers(shape: ReplicaShape) -> tuple[int, int, int]:
    """Return the layers with full attention, those with a sliding window, and its tokens."""
    attention = shape.model.attention
    windowed = attention.windowed_layers
    return len(shape.model.attention_layers) - windowed, windowed, attention.sliding_window or shape.model.max_context


def _scale_with_width(shape: ReplicaShape) -> float:
    """Return the overhead of a layer, relative to one of a hidden size of 8192."""
    return float((shape.model.hidden / 8192) ** 0.5)


def _scale_decode_layer(shape: ReplicaShape) -> float:
    """Return the same for a decode step: starting the kernels of a narrow layer takes as long as of a wider one."""
    scale = _scale_with_width(shape)
    return scale if shape.model.experts else max(scale, load_assumptions().narrow_layer)


def _count_all_reduce_bytes(shape: ReplicaShape) -> float:
    """Return the bytes that one GPU sends for a token of a long prompt: two all-reduces a layer in a ring, and the
    exchange between ranks."""
    moved = shape.model.layers * 2 * (shape.tp - 1) / shape.tp * 2
    return (moved + _count_exchanged(shape)) * shape.model.hidden * _BYTES


def _count_small_all_reduce_bytes(shape: ReplicaShape, gpu: GpuKind) -> float:
    """Return the bytes that one GPU receives for a decoded token. With few tokens on NVLink, vLLM's all-reduce has each
    GPU read those of all others at once: one step, but more bytes than a ring. Over PCIe it takes the ring. The rows of
    MI300X follow the ring too."""
    if gpu.vendor != "nvidia" or not has_fast_link(gpu, _count_expert_ranks(shape)[1]):
        return _count_all_reduce_bytes(shape)
    moved = shape.model.layers * 2 * (shape.tp - 1)
    return (moved + _count_exchanged(shape)) * shape.model.hidden * _BYTES


def _count_exchanged(shape: ReplicaShape) -> int:
    """Return how often a token is sent between data-parallel ranks that share experts, before and after the experts."""
    ranks, _ = _count_expert_ranks(shape)
    return shape.work.expert_layers * 2 * (ranks - 1) * 2 if ranks > 1 else 0


def _count_all_reduce_calls(shape: ReplicaShape, gpu: GpuKind) -> float:
    ranks, _ = _count_expert_ranks(shape)
    calls = (2 * shape.model.layers if shape.tp > 1 else 0) + (2 * shape.work.expert_layers if ranks > 1 else 0)
    return calls * (1.0 if has_fast_link(gpu, shape.tp * ranks) else load_assumptions().pcie_call_factor)


def _find_group_rate(shape: ReplicaShape, gpu: GpuKind) -> float:
    return find_all_reduce_gb_per_s(gpu, _count_expert_ranks(shape)[1])
