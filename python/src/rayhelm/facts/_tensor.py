"""One weight tensor, and its bytes in GPU memory by the model's dtype and quantization."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

from rayhelm.facts.model import Checkpoint, Quantization

__all__ = ["Matrix", "Shard", "Tensor", "TensorBuilder", "element_bytes"]

Shard = Literal["split", "kv", "vocab", "replicated"]
"""split: divided by TP · kv: divided by TP up to the KV heads, then replicated · vocab: divided after padding the
vocabulary to a multiple · replicated: whole on every rank (norms, routers, MLA's down-projections)."""


@dataclass(frozen=True)
class Matrix:
    """Shape of a linear layer."""

    inputs: int
    outputs: int
    copies: int
    """Matrices of this shape: experts."""


@dataclass(frozen=True)
class Tensor:
    """A weight, or all weights of one kind in one layer."""

    name: str
    """Role: `attention.q`, `experts.down`."""
    parameters: int
    bytes: float
    """In GPU memory, including scales and zero points."""
    shard: Shard
    matrix: Matrix | None = None
    """Shape, if it is a linear layer."""


def element_bytes(model: Checkpoint) -> int:
    """Return the bytes of one unquantized weight in GPU memory. vLLM's `dtype: auto` casts float32 checkpoints to 16
    bits."""
    return 4 if model.dtype == "float32" and model.engine == "custom" else 2


@dataclass(frozen=True)
class TensorBuilder:
    """Builds the tensors of one part of a model. `quantization` is None if the part stays in the model's dtype."""

    width: int
    """Bytes of an unquantized element."""
    quantization: Quantization | None

    @classmethod
    def plain(cls, model: Checkpoint) -> TensorBuilder:
        return cls(element_bytes(model), None)

    @classmethod
    def of(cls, model: Checkpoint) -> TensorBuilder:
        return cls(element_bytes(model), model.quantization)

    def for_attention(self) -> TensorBuilder:
        return self._only(lambda q: q.attention and not q.only_experts)

    def for_dense_mlp(self) -> TensorBuilder:
        return self._only(lambda q: not q.only_experts)

    def for_head(self) -> TensorBuilder:
        return self._only(lambda q: q.lm_head)

    def table(self, name: str, rows: int, columns: int, shard: Shard = "replicated") -> Tensor:
        return self.vector(name, rows * columns, shard)

    def vector(self, name: str, parameters: int, shard: Shard = "replicated") -> Tensor:
        """Return a tensor that is never quantized."""
        return Tensor(name, parameters, float(parameters * self.width), shard)

    def linear(
        self, name: str, inputs: int, outputs: int, shard: Shard, *, bias: bool = False, copies: int = 1
    ) -> Tensor:
        """Return a matrix with `outputs` rows and `inputs` columns, `copies` times."""
        biases = outputs if bias else 0
        stored = _count_matrix_bytes(inputs, outputs, self.quantization, self.width) + biases * self.width
        matrix = Matrix(inputs, outputs, copies)
        return Tensor(name, copies * (inputs * outputs + biases), copies * stored, shard, matrix)

    def _only(self, applies: Callable[[Quantization], bool]) -> TensorBuilder:
        if self.quantization is None or applies(self.quantization):
            return self
        return replace(self, quantization=None)


def _count_matrix_bytes(inputs: int, outputs: int, quantization: Quantization | None, width: int) -> float:
    if quantization is None:
        return float(inputs * outputs * width)
    scale = (quantization.scale_bits + quantization.zero_bits) / 8
    return inputs * outputs * quantization.bits / 8 + _count_scales(inputs, outputs, quantization) * scale


def _count_scales(inputs: int, outputs: int, quantization: Quantization) -> int:
    if quantization.block:
        rows, columns = quantization.block
        return ceil(outputs / rows) * ceil(inputs / columns)
    if quantization.group_size:
        return outputs * ceil(inputs / quantization.group_size)
    return outputs
