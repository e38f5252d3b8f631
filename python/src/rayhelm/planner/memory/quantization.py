"""Formats of weights that vLLM refuses: quantized checkpoints on a GPU or at all, and bfloat16."""

from collections.abc import Iterable

from rayhelm.facts.engines import EngineConstants, QuantizationLimit
from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.model import Checkpoint

__all__ = ["find_dtype_error", "find_quantization_error", "is_deprecated"]


def find_quantization_error(model: Checkpoint, gpu: GpuKind, engine: EngineConstants) -> str:
    """Return why vLLM refuses the quantization of a checkpoint on a GPU; empty if it does not, or if that is not
    known."""
    if reason := _find_fp8_error(model, gpu, engine):
        return reason
    limit = _find_limit(model, engine)
    if limit is None:
        return ""
    version, method = f"vLLM {engine.version}", limit.method
    if limit.is_removed:
        return f"{version} no longer reads {method} checkpoints"
    if gpu.vendor in limit.not_on:
        return f"{version} has no kernels for {method} checkpoints on {gpu.id}"
    least = limit.least_compute
    if gpu.vendor == "nvidia" and gpu.compute and float(gpu.compute) < least:
        return f"{version} needs compute capability {least} for {method} checkpoints, and {gpu.id} has {gpu.compute}"
    return ""


def find_dtype_error(dtype: object, gpus: Iterable[GpuKind]) -> str:
    """Return why vLLM refuses a pinned `dtype` on one of the GPUs; empty if it does not."""
    without = next((gpu for gpu in gpus if not gpu.bf16), None)
    return f"{without.id} does not compute in bfloat16: vLLM refuses `dtype`" if without and dtype == "bfloat16" else ""


def is_deprecated(model: Checkpoint, engine: EngineConstants) -> bool:
    """Return whether vLLM reads the checkpoint with `allow_deprecated_quantization` only."""
    limit = _find_limit(model, engine)
    return limit is not None and limit.is_deprecated


def _find_fp8_error(model: Checkpoint, gpu: GpuKind, engine: EngineConstants) -> str:
    """Return why an AMD GPU has no kernels for an FP8 checkpoint. Where NVIDIA GPUs without FP8 keep such weights and
    compute in 16 bits, vLLM on ROCm does so only for scales of blocks, and not for experts."""
    quantization, kernels = model.quantization, engine.fp8_on_amd
    if kernels is None or quantization is None or quantization.method not in kernels.methods or quantization.bits != 8:
        return ""
    if quantization.method == "compressed-tensors" and quantization.weight_type != "float":
        return ""
    if gpu.vendor != "amd" or gpu.compute is None or model.engine != "vllm":
        return ""
    what, needed = "FP8 checkpoints with one scale per tensor or channel", kernels.tensor_scales
    if quantization.block:
        if model.experts is None:
            return ""
        what, needed = "experts in FP8", kernels.experts
    if gpu.compute.startswith(needed):
        return ""
    return f"vLLM {engine.version} has no kernels for {what} on {gpu.id} ({gpu.compute})"


def _find_limit(model: Checkpoint, engine: EngineConstants) -> QuantizationLimit | None:
    if model.quantization is None or model.engine != "vllm":
        return None
    method = model.quantization.method
    name = f"{method}_fp4" if method == "modelopt" and model.quantization.bits <= 4 else method
    return next((limit for limit in engine.quantization if limit.method == name), None)
