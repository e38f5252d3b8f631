"""How the kernels of fused experts pad weights in MXFP4, by `moe_backend` and GPU.

Source: vllm 0.29 model_executor/layers/fused_moe/oracle/mxfp4.py. Logs of gpt-oss-120b on H100 agree: 64.38 GiB with
Triton (llm-d-planner @e50305a, docs/empirical-vllm-memory-results.md), 65.97 GiB with Marlin (vllm-project/vllm#23278).
"""

from dataclasses import dataclass

from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.model import Checkpoint

__all__ = ["MARLIN", "TRITON", "ExpertPadding", "compute_experts_growth", "find_padding"]


@dataclass(frozen=True)
class ExpertPadding:
    """Multiples to which a kernel pads."""

    hidden: int
    width: int
    """Of an expert on one rank."""
    pads_scales: bool = True


TRITON = ExpertPadding(256, 64, pads_scales=False)
"""On Hopper. It stores the values in tiles, and the scales as they are."""
MARLIN = ExpertPadding(256, 128)
"""Also the kernels of TensorRT-LLM on Blackwell."""
_BY_BACKEND = {
    "triton": TRITON,
    "triton_unfused": TRITON,
    "flashinfer_cutlass": ExpertPadding(128, 128),
    "flashinfer_cutlass_afp8": ExpertPadding(128, 128),
}
_AMD = ExpertPadding(256, 256)


def find_padding(gpu: GpuKind, moe_backend: str = "auto") -> ExpertPadding:
    """Return the padding of the kernel that vLLM chooses on this GPU, or of the one that `moe_backend` names."""
    if gpu.vendor == "amd":
        return _AMD
    if moe_backend != "auto":
        return _BY_BACKEND.get(moe_backend, MARLIN)
    return TRITON if (gpu.compute or "").startswith("9.") else MARLIN


def compute_experts_growth(model: Checkpoint, tp: int, padding: ExpertPadding) -> float:
    """Return the factor by which padding enlarges the experts; 1 without padding. The router is too small to count."""
    quantization = model.quantization
    if not (model.experts and quantization and quantization.method == "mxfp4"):
        return 1.0
    hidden, wide = model.hidden, model.experts.intermediate
    growth = _pad(hidden, padding.hidden) / hidden * _pad(-(-wide // tp), padding.width) * tp / wide
    if padding.pads_scales or not quantization.group_size:
        return growth
    scales = quantization.scale_bits / quantization.group_size
    return (growth * quantization.bits + scales) / (quantization.bits + scales)


def _pad(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
