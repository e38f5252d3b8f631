"""Checkpoints that vLLM quantizes when it loads them."""

from collections.abc import Mapping

from rayhelm.facts.model import Checkpoint, Quantization

__all__ = ["quantize_at_load"]

_PER_TENSOR = Quantization(method="fp8", bits=8)
_METHODS = {
    "fp8": _PER_TENSOR,
    "fp8_per_tensor": _PER_TENSOR,
    "fp8_per_channel": _PER_TENSOR,
    "fp8_per_block": Quantization(method="fp8", bits=8, block=(128, 128), scale_bits=32),
}
"""By value of vLLM's `quantization` (vllm 0.29 config/quantization.py): linear weights and experts, layer by layer, so
that the weights of 16 bits are never on the GPU together."""


def quantize_at_load(model: Checkpoint, engine: Mapping[str, object]) -> Checkpoint:
    """Return the model as the engine holds it: `quantization: fp8` quantizes a checkpoint of 16 bits."""
    wanted = _METHODS.get(str(engine.get("quantization")))
    if wanted is None or model.quantization or model.stated or model.engine == "custom":
        return model
    return model.model_copy(update={"quantization": wanted})
