"""Weights of layers with a recurrent state: Mamba, Mamba 2, gated delta rule, Kimi's delta attention, convolutions."""

from collections.abc import Callable

from rayhelm.facts._tensor import Tensor, TensorBuilder
from rayhelm.facts.model import Recurrence

__all__ = ["build_recurrence"]


def build_recurrence(recurrence: Recurrence, hidden: int, store: TensorBuilder) -> list[Tensor]:
    """Return the weights of one layer. Convolutions and vectors are never quantized."""
    return _BUILDERS[recurrence.kind](recurrence, hidden, store)


def _build_mamba(part: Recurrence, hidden: int, store: TensorBuilder) -> list[Tensor]:
    inner, bias = part.heads * part.head_dim, part.projection_bias
    norms = part.rank + 2 * part.state if part.norms else 0
    return [
        store.linear("mamba.in", hidden, 2 * inner, "split", bias=bias),
        _build_convolution(part, inner, store),
        store.linear("mamba.x", inner, part.rank + 2 * part.state, "split"),
        store.linear("mamba.dt", part.rank, inner, "split", bias=True),
        store.linear("mamba.out", inner, hidden, "split", bias=bias),
        store.vector("mamba.state", inner * (part.state + 1), "split"),
        store.vector("mamba.norms", norms),
    ]


def _build_mamba2(part: Recurrence, hidden: int, store: TensorBuilder) -> list[Tensor]:
    inner, bias = part.heads * part.head_dim, part.projection_bias
    mixed = inner + 2 * part.groups * part.state
    return [
        store.linear("mamba.in", hidden, inner + mixed + part.heads, "split", bias=bias),
        _build_convolution(part, mixed, store),
        store.linear("mamba.out", inner, hidden, "split", bias=bias),
        store.vector("mamba.state", 3 * part.heads, "split"),
        store.vector("mamba.norm", inner if part.gated_norm else 0, "split"),
    ]


def _build_delta(part: Recurrence, hidden: int, store: TensorBuilder) -> list[Tensor]:
    keys, values = part.groups * part.state, part.heads * part.head_dim
    return [
        store.linear("delta.in", hidden, 2 * keys + 2 * values, "split"),
        store.linear("delta.gates", hidden, 2 * part.heads, "split"),
        _build_convolution(part, 2 * keys + values, store),
        store.linear("delta.out", values, hidden, "split"),
        store.vector("delta.state", 2 * part.heads, "split"),
        store.vector("delta.norm", part.head_dim),
    ]


def _build_kimi_delta(part: Recurrence, hidden: int, store: TensorBuilder) -> list[Tensor]:
    width = part.heads * part.head_dim
    return [
        store.linear("delta.in", hidden, 3 * width, "split"),
        store.linear("delta.gates_down", hidden, 2 * part.head_dim, "replicated"),
        store.linear("delta.gates_up", part.head_dim, 2 * width, "split"),
        store.linear("delta.beta", hidden, part.heads, "split"),
        _build_convolution(part, 3 * width, store),
        store.linear("delta.out", width, hidden, "split"),
        store.vector("delta.state", width + part.heads, "split"),
        store.vector("delta.norm", part.head_dim),
    ]


def _build_short_convolution(part: Recurrence, hidden: int, store: TensorBuilder) -> list[Tensor]:
    bias = part.projection_bias
    return [
        store.linear("convolution.in", hidden, 3 * hidden, "split", bias=bias),
        _build_convolution(part, hidden, store),
        store.linear("convolution.out", hidden, hidden, "split", bias=bias),
    ]


def _build_convolution(part: Recurrence, width: int, store: TensorBuilder) -> Tensor:
    return store.vector("convolution", width * (part.kernel + part.convolution_bias), "split")


_BUILDERS: dict[str, Callable[[Recurrence, int, TensorBuilder], list[Tensor]]] = {
    "mamba": _build_mamba,
    "mamba2": _build_mamba2,
    "delta": _build_delta,
    "kimi_delta": _build_kimi_delta,
    "convolution": _build_short_convolution,
}
