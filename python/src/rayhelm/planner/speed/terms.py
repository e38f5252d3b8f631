"""Terms of the speed model: what each part of a step would take at nominal rates, in seconds.

The fitted coefficients multiply them. One stage of one rank is counted at a time.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rayhelm.facts.gpu import GpuKind
from rayhelm.planner.speed.assumptions import load_assumptions
from rayhelm.planner.speed.coefficients import SpeedCoefficients
from rayhelm.planner.speed.links import find_all_reduce_gb_per_s, has_fast_link
from rayhelm.planner.speed.replica import Replica

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
    prompts: float = 0.0
    """Requests whose prompt starts: an encoder computes the input of each."""


def list_missing_figures(gpu: GpuKind) -> tuple[str, ...]:
    """Return missing figures of a GPU without which speed cannot be estimated."""
    wanted = {"memory bandwidth": gpu.memory_bandwidth_gb_per_s, "16-bit TFLOP/s": gpu.bf16_tflops}
    return tuple(f"{what} of {gpu.id}" for what, figure in wanted.items() if figure is None)


Rates = dict[str, dict[str, float]]
"""Seconds of each term per unit of what a step computes, by unit of `count_units` and name of the coefficient."""


def count_decode_terms(
    replica: Replica, gpu: GpuKind, batch: StageBatch, fitted: SpeedCoefficients
) -> dict[str, float]:
    """Return the terms of one decode step on one stage, by name of the coefficient."""
    units = count_units(replica, batch)
    rates = list_decode_rates(replica, gpu, fitted)
    return _add_terms(rates, units)


def _add_terms(rates: Rates, units: Mapping[str, float]) -> dict[str, float]:
    terms: dict[str, float] = {}
    for unit, of_unit in rates.items():
        for name, rate in of_unit.items():
            terms[name] = terms.get(name, 0.0) + rate * units[unit]
    return terms


def count_units(replica: Replica, batch: StageBatch) -> dict[str, float]:
    """Return what a batch computes. Without `step` and `experts_hit`, it grows linearly with each figure of the
    batch."""
    full, windowed, window = _count_attention_layers(replica)
    return {
        "step": 1.0,
        "experts_hit": count_experts_hit(replica, batch.tokens),
        "sequences": batch.sequences,
        "cached_tokens": batch.sequences * (full * batch.context + windowed * min(batch.context, window)),
        "tokens": batch.tokens,
        "prefill_tokens": batch.prefill_tokens,
        "prompts": batch.prompts,
        "all_tokens": batch.tokens + batch.prefill_tokens,
        "pairs": full * batch.prefill_pairs + windowed * batch.prefill_window_pairs,
    }


def list_decode_rates(replica: Replica, gpu: GpuKind, fitted: SpeedCoefficients) -> Rates:
    """Return the rates of a decode step on one stage. Cached tokens and pairs are counted in each layer.

    Of `fitted`, only the efficiencies count, which no fit changes."""
    if gpu.id not in replica.known_rates:
        replica.known_rates[gpu.id] = _compute_decode_rates(replica, gpu, fitted)
    return replica.known_rates[gpu.id]


def _compute_decode_rates(replica: Replica, gpu: GpuKind, fitted: SpeedCoefficients) -> Rates:
    model, work, shape = replica.model, replica.work, replica.shape
    part = 1 / shape.pp
    bandwidth = (gpu.memory_bandwidth_gb_per_s or 0.0) * 1e9
    native = _is_native(gpu, work.expert_format)
    dense_bytes = work.dense_bytes * part / shape.tp
    expert_bytes = work.expert_bytes * part / model.experts.count if model.experts else 0.0
    expert_read = expert_bytes / shape.expert_gpus / bandwidth
    calls = work.expert_layers * part / shape.expert_ranks * _US
    dense = _compute_dense(replica, gpu, 1.0, fitted)
    prompt = _list_prefill_rates(replica, gpu, fitted)
    exchanged = _count_small_all_reduce_bytes(replica, gpu) * part
    return {
        "step": {
            "dense_weights": dense_bytes / bandwidth / fitted.memory_efficiency[work.dense_format],
            "step": 1e-3,
            "layer": model.layers * part * _scale_decode_layer(replica) * _US,
            "latent_layer": model.layers * part * _US if model.attention.mla else 0.0,
            "expert_layer": work.expert_layers * part * _US,
            "all_reduce_calls": _count_all_reduce_calls(replica, gpu) * part * _US,
        },
        "experts_hit": {
            "expert_weights_native": expert_read / fitted.memory_efficiency["bf16_experts"] if native else 0.0,
            "expert_weights_converted": 0.0 if native else expert_read / fitted.memory_efficiency["converted_experts"],
            "expert_call_native": calls if native else 0.0,
            "expert_call_converted": 0.0 if native else calls,
        },
        "cached_tokens": {"kv_cache": replica.kv_bytes_per_token * part / model.layers / bandwidth},
        "tokens": {
            "decode_compute": dense,
            "all_reduce_small": exchanged / (_find_group_rate(replica, gpu) * 1e9),
        },
        "sequences": {"sequence": _US},
        **{unit: {name: rate * part for name, rate in rates.items()} for unit, rates in prompt.items()},
    }


def find_least_step_s(replica: Replica, gpu: GpuKind, batch: StageBatch) -> float:
    """Return the time in which the memory of a GPU delivers what a decode step needs at least: the weights, those of as
    few experts as one token needs, and the cache."""
    work, experts = replica.work, replica.model.experts
    shards = replica.shape.expert_gpus
    expert_bytes = work.expert_bytes * experts.active / experts.count / shards if experts else 0.0
    cached = replica.kv_bytes_per_token / replica.model.layers * count_units(replica, batch)["cached_tokens"]
    read = work.dense_bytes / replica.shape.tp + expert_bytes + cached
    return read / replica.shape.pp / ((gpu.memory_bandwidth_gb_per_s or 0.0) * 1e9)


def count_prefill_terms(
    replica: Replica, gpu: GpuKind, batch: StageBatch, fitted: SpeedCoefficients
) -> dict[str, float]:
    """Return the terms of the time to first token on one stage, but for those of the queue."""
    model, work, part = replica.model, replica.work, 1 / replica.shape.pp
    bandwidth = (gpu.memory_bandwidth_gb_per_s or 0.0) * 1e9
    native, shards = _is_native(gpu, work.expert_format), replica.shape.expert_gpus
    units = count_units(replica, batch)
    rates = _list_prefill_rates(replica, gpu, fitted)
    prefill = _add_terms(rates, units)
    expert = prefill.pop("expert_compute")
    terms = prefill | {
        "expert_compute_native": expert if native else 0.0,
        "expert_compute_converted": 0.0 if native else expert,
        "weights_read": (work.dense_bytes / replica.shape.tp + work.expert_bytes / shards) / bandwidth,
        "layer": model.layers * 1e-3 * _scale_with_width(replica),
        "expert_layer": work.expert_layers * 1e-3,
        "latent_layer": model.layers * 1e-3 if model.attention.mla else 0.0,
        "tensor_layer": model.layers * 1e-3 if replica.shape.tp > 1 else 0.0,
    }
    return {name: seconds * part for name, seconds in terms.items()}


def _list_prefill_rates(replica: Replica, gpu: GpuKind, fitted: SpeedCoefficients) -> Rates:
    """Return the rates of prompt tokens, and of decoded tokens beside them, for all layers."""
    if gpu.id not in replica.known_prefill_rates:
        replica.known_prefill_rates[gpu.id] = _compute_prefill_rates(replica, gpu, fitted)
    return replica.known_prefill_rates[gpu.id]


def _compute_prefill_rates(replica: Replica, gpu: GpuKind, fitted: SpeedCoefficients) -> Rates:
    model, work = replica.model, replica.work
    shape = replica.shape
    flops = _find_flops(gpu, work.expert_format) * fitted.compute_efficiency[work.expert_format]
    width = model.attention.heads * model.attention.head_dim
    return {
        "prefill_tokens": {
            "prefill_compute": _compute_dense(replica, gpu, 1.0, fitted) * shape.pp,
            "all_reduce_bytes": _count_all_reduce_bytes(replica) / (_find_group_rate(replica, gpu) * 1e9),
        },
        "all_tokens": {"expert_compute": 2 * work.expert_parameters * shape.expert_ranks / shape.expert_gpus / flops},
        "pairs": {"attention": 2 * 4 * width / shape.tp / ((gpu.bf16_tflops or 0.0) * 1e12)},
        "prompts": {"prefill_compute": _compute_encoder(replica, gpu) / shape.tp},
    }


def _compute_encoder(replica: Replica, gpu: GpuKind) -> float:
    """Return the seconds of an encoder whose whole output each request reads (Whisper: 30 s of audio), and of the keys
    and values that the decoder makes of it. Other inputs, such as images, have no known number per request."""
    model, encoder = replica.model, replica.model.encoder
    if model.engine != "vllm" or encoder is None or not encoder.cross_attention or encoder.kind != "audio":
        return 0.0
    matrices = encoder.layers * encoder.hidden * (4 * encoder.hidden + 2 * encoder.intermediate)
    crossed = model.layers * encoder.hidden * 2 * model.attention.kv_heads * model.attention.head_dim
    pairs = encoder.layers * encoder.positions**2 * encoder.hidden
    flops = 2 * (matrices + crossed) * encoder.positions + 4 * pairs
    return flops / ((gpu.bf16_tflops or 0.0) * 1e12 * load_assumptions().encoder_efficiency)


def _compute_dense(replica: Replica, gpu: GpuKind, tokens: float, fitted: SpeedCoefficients) -> float:
    work = replica.work
    flops = _find_flops(gpu, work.dense_format) * fitted.compute_efficiency[work.dense_format]
    return 2 * work.dense_parameters * tokens / replica.shape.tp / replica.shape.pp / flops


def _is_native(gpu: GpuKind, weights: str) -> bool:
    """Return whether the GPU multiplies weights of this format; otherwise a kernel converts them first."""
    return {"bf16": True, "fp8": gpu.fp8, "fp4": bool(gpu.fp4_tflops)}.get(weights, False)


def _find_flops(gpu: GpuKind, weights: str) -> float:
    """Return dense FLOP/s for weights of this format; those that the GPU does not multiply are converted to 16 bits."""
    by_format = {"fp8": gpu.fp8_tflops if gpu.fp8 else None, "fp4": gpu.fp4_tflops}
    return (by_format.get(weights) or gpu.bf16_tflops or 0.0) * 1e12


def count_experts_hit(replica: Replica, tokens: float) -> float:
    """Return the experts of a layer that a batch of `tokens` on each rank needs, with uniform routing."""
    if not (experts := replica.model.experts):
        return 0.0
    ranks = replica.shape.expert_ranks
    missed: float = (1.0 - experts.active / experts.count) ** max(tokens * ranks, 1.0)
    return experts.count * (1.0 - missed)


def _count_attention_layers(replica: Replica) -> tuple[int, int, int]:
    """Return the layers with full attention, those with a sliding window or chunks, and its tokens."""
    model, attention = replica.model, replica.model.attention
    local = attention.local_layers
    return len(model.attention_layers) - local, local, attention.local_tokens or model.max_context


def _scale_with_width(replica: Replica) -> float:
    """Return the overhead of a layer, relative to one of a hidden size of 8192."""
    return float((replica.model.hidden / 8192) ** 0.5)


def _scale_decode_layer(replica: Replica) -> float:
    """Return the same for a decode step: starting the kernels of a narrow layer takes as long as of a wider one."""
    scale = _scale_with_width(replica)
    return scale if replica.model.experts else max(scale, load_assumptions().narrow_layer)


def _count_all_reduce_bytes(replica: Replica) -> float:
    """Return the bytes that one GPU sends for a token of a long prompt: two all-reduces a layer in a ring, and the
    exchange between ranks."""
    moved = replica.model.layers * 2 * (replica.shape.tp - 1) / replica.shape.tp * 2
    return (moved + _count_exchanged(replica)) * replica.model.hidden * _BYTES


def _count_small_all_reduce_bytes(replica: Replica, gpu: GpuKind) -> float:
    """Return the bytes that one GPU receives for a decoded token. With few tokens on NVLink, vLLM's all-reduce has each
    GPU read those of all others at once: one step, but more bytes than a ring. Over PCIe it takes the ring. The rows of
    MI300X follow the ring too."""
    if gpu.vendor != "nvidia" or not has_fast_link(gpu, replica.shape.expert_gpus):
        return _count_all_reduce_bytes(replica)
    moved = replica.model.layers * 2 * (replica.shape.tp - 1)
    return (moved + _count_exchanged(replica)) * replica.model.hidden * _BYTES


def _count_exchanged(replica: Replica) -> int:
    """Return how often a token is sent between data-parallel ranks that share experts, before and after the experts."""
    ranks = replica.shape.expert_ranks
    return replica.work.expert_layers * 2 * (ranks - 1) * 2 if ranks > 1 else 0


def _count_all_reduce_calls(replica: Replica, gpu: GpuKind) -> float:
    shape = replica.shape
    exchanges = 2 * replica.work.expert_layers if shape.expert_ranks > 1 else 0
    calls = exchanges + (2 * replica.model.layers if shape.tp > 1 else 0)
    return calls * (1.0 if has_fast_link(gpu, shape.expert_gpus) else load_assumptions().pcie_call_factor)


def _find_group_rate(replica: Replica, gpu: GpuKind) -> float:
    return find_all_reduce_gb_per_s(gpu, replica.shape.expert_gpus)
