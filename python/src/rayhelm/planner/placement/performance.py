"""Speed of a replica: a roofline with fitted overheads, as an estimate with an error.

The coefficients and their sources are in `data/performance/roofline.yaml`. Units: bytes, FLOPs, seconds.
"""

from dataclasses import dataclass
from functools import cache, lru_cache
from math import sqrt
from pathlib import Path

import yaml

from rayhelm.catalog.gpu import GpuKind
from rayhelm.catalog.model import Checkpoint
from rayhelm.catalog.tensors import count_weights
from rayhelm.closed import Closed

__all__ = [
    "Roofline",
    "Work",
    "count_work",
    "estimate_decode_step_s",
    "estimate_first_token_s",
    "estimate_prefill_s",
    "list_missing_figures",
    "load_roofline",
]


class FirstToken(Closed):
    """Coefficients of the time to first token."""

    prefill: float
    step: float
    fixed_s: float


class Roofline(Closed):
    """Coefficients of the estimate."""

    source: str
    tpot_error: str
    ttft_error: str
    ttft_alone: FirstToken
    ttft_loaded: FirstToken
    weights: float
    kv: float
    compute: float
    all_reduce: float
    all_reduce_latency_s: float
    layer_s: float
    sequence_s: float
    prefill_efficiency: float
    prefill_efficiency_source: str
    attention_efficiency: float
    point_to_point_s: float
    pcie_all_reduce_share: float
    replica_utilization: float
    replica_utilization_source: str


@cache
def load_roofline() -> Roofline:
    path = Path(__file__).parents[2] / "data" / "performance" / "roofline.yaml"
    return Roofline.model_validate(yaml.safe_load(path.read_text()))


@dataclass(frozen=True)
class Work:
    """Bytes and parameters per token."""

    dense_bytes: float
    """Weights that every decode step reads, whatever the batch."""
    expert_bytes: float
    """All routed experts of all layers."""
    experts: int
    active_experts: int
    active_parameters: float
    """Parameters that one token passes through, without the input embedding."""

    def bytes_read(self, sequences: float) -> float:
        """Return the bytes of weights that a step of `sequences` tokens reads; experts are hit by uniform routing."""
        if not self.experts:
            return self.dense_bytes
        missed: float = (1 - self.active_experts / self.experts) ** max(sequences, 1)
        return self.dense_bytes + self.expert_bytes * (1 - missed)


@lru_cache(maxsize=512)
def count_work(model: Checkpoint) -> Work:
    all_weights = count_weights(model)
    dense_bytes = dense_parameters = expert_bytes = expert_parameters = 0.0
    for tensor in (*(tensor for layer in all_weights.layers for tensor in layer), *all_weights.final):
        if tensor.name in ("experts.gate_up", "experts.down"):
            expert_bytes += tensor.bytes
            expert_parameters += tensor.parameters
        else:
            dense_bytes += tensor.bytes
            dense_parameters += tensor.parameters or tensor.bytes / 2
    experts = model.experts
    share = experts.active / experts.count if experts else 0.0
    return Work(
        dense_bytes=dense_bytes,
        expert_bytes=expert_bytes,
        experts=experts.count if experts else 0,
        active_experts=experts.active if experts else 0,
        active_parameters=dense_parameters + expert_parameters * share,
    )


def list_missing_figures(gpu: GpuKind) -> tuple[str, ...]:
    """Return missing figures of a GPU without which speed cannot be estimated."""
    wanted = {"memory bandwidth": gpu.memory_bandwidth_gb_per_s, "16-bit TFLOP/s": gpu.bf16_tflops}
    return tuple(f"{what} of {gpu.id}" for what, figure in wanted.items() if figure is None)


def estimate_decode_step_s(
    model: Checkpoint,
    gpus: tuple[GpuKind, ...],
    tp: int,
    concurrency: float,
    context: float,
    kv_bytes_per_token: float,
    reuse: float,
    hop_s: float | None = None,
) -> float | None:
    """Return seconds of one decode step over all stages.

    `gpus`: one per pipeline stage. `context`: mean tokens in cache per sequence. `kv_bytes_per_token`: on one GPU that
    holds all layers. `reuse`: prompt tokens computed per output token (ISL/OSL), which continuous batching mixes in.
    `hop_s`: seconds from one stage to the next; None if it was not measured.
    """
    if any(list_missing_figures(gpu) for gpu in gpus):
        return None
    fitted, stages, job = load_roofline(), len(gpus), count_work(model)
    concurrency = concurrency / stages  # stages work on different requests at the same time
    total = 0.0
    for gpu in gpus:
        bandwidth, flops = (gpu.memory_bandwidth_gb_per_s or 0) * 1e9, _find_flops(model, gpu)
        read = job.bytes_read(concurrency) / tp / stages
        cached = concurrency * context * kv_bytes_per_token / stages
        total += fitted.weights * read / bandwidth + fitted.kv * cached / bandwidth
        total += fitted.compute * 2 * job.active_parameters / stages * concurrency * (1 + reuse) / (tp * flops)
        total += _estimate_all_reduce_s(model, gpu, tp, concurrency) / stages
    total += fitted.layer_s * model.layers + fitted.sequence_s * concurrency
    return total + (stages - 1) * (fitted.point_to_point_s if hop_s is None else hop_s)


def estimate_prefill_s(
    model: Checkpoint,
    gpus: tuple[GpuKind, ...],
    tp: int,
    tokens: float,
    link_gb_per_s: float | None,
    latency_s: float | None = None,
) -> float | None:
    """Return seconds to compute a prompt of `tokens`, alone on the replica. `link_gb_per_s`: between pipeline
    stages; `latency_s`: of that link, None if it was not measured."""
    if any(list_missing_figures(gpu) for gpu in gpus):
        return None
    fitted, stages, job = load_roofline(), len(gpus), count_work(model)
    attention = 2 * model.layers * model.hidden * tokens**2
    total = 0.0
    for gpu in gpus:
        flops = _find_flops(model, gpu) * tp
        total += 2 * job.active_parameters * tokens / stages / (flops * fitted.prefill_efficiency)
        total += attention / stages / (flops * fitted.attention_efficiency)
        total += _estimate_all_reduce_s(model, gpu, tp, tokens) / stages
    if stages > 1 and link_gb_per_s:
        latency = fitted.point_to_point_s if latency_s is None else latency_s
        total += (stages - 1) * (latency + tokens * model.hidden * 2 / (link_gb_per_s * 1e9))
    return total + fitted.layer_s * model.layers


def estimate_first_token_s(prefill: float, step: float, concurrency: float) -> float:
    """Return seconds to the first token, from the seconds of a prefill alone and of a decode step, with so many in
    flight."""
    alone, loaded = load_roofline().ttft_alone, load_roofline().ttft_loaded
    return max(
        alone.prefill * prefill + alone.step * step + alone.fixed_s,
        loaded.prefill * prefill * sqrt(max(concurrency, 1)) + loaded.step * step + loaded.fixed_s,
    )


def _find_flops(model: Checkpoint, gpu: GpuKind) -> float:
    """Return dense FLOP/s for this checkpoint: FP8 weights in FP8 if the GPU supports it, 4-bit weights in 16 bits."""
    if model.quantization and model.quantization.bits == 8 and gpu.fp8 and gpu.fp8_tflops:
        return gpu.fp8_tflops * 1e12
    return (gpu.bf16_tflops or 0) * 1e12


def _estimate_all_reduce_s(model: Checkpoint, gpu: GpuKind, tp: int, tokens: float) -> float:
    """Return two all-reduces a layer, of one hidden state per token."""
    if tp == 1:
        return 0.0
    fitted = load_roofline()
    moved = 2 * model.layers * 2 * (tp - 1) / tp * tokens * model.hidden * 2
    return (
        fitted.all_reduce * moved / (find_link_gb_per_s(gpu, tp) * 1e9) + fitted.all_reduce_latency_s * 2 * model.layers
    )


def find_link_gb_per_s(gpu: GpuKind, count: int) -> float:
    """Return the rate between `count` GPUs of one host, one direction, GB/s."""
    if gpu.link.gb_per_s and gpu.link.fast and count <= (gpu.link.group or count):
        return gpu.link.gb_per_s
    return (gpu.pcie_gb_per_s or 16) * load_roofline().pcie_all_reduce_share / max(1, count // 2)
