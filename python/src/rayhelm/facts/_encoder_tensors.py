"""Weights of encoders beside a decoder: audio, vision towers."""

from rayhelm.facts._tensor import Tensor, TensorBuilder
from rayhelm.facts.model import Encoder

__all__ = ["build_encoder"]


def build_encoder(encoder: Encoder, store: TensorBuilder) -> list[Tensor]:
    """Return the weights of a transformer encoder, including its convolutions and positions."""
    width, wide, layers = encoder.hidden, encoder.intermediate, encoder.layers
    ups = 2 if encoder.gated else 1
    attention, mlp = 4 * width * width, (ups + 1) * width * wide
    if encoder.bias:
        attention += 3 * width + (width if encoder.key_bias else 0)
        mlp += ups * wide + width
    return [
        store.vector("encoder.stem", _count_stem(encoder)),
        store.vector("encoder.attention", layers * attention, "split"),
        store.vector("encoder.mlp", layers * mlp, "split"),
        store.vector("encoder.norms", (2 * layers + 1) * width * (2 if encoder.norm_bias else 1)),
    ]


def _count_stem(encoder: Encoder) -> int:
    width = encoder.hidden
    stem = encoder.positions * width if encoder.kind != "text" and encoder.learned_positions else 0
    if encoder.mel_bins:
        stem += 3 * width * (encoder.mel_bins + width) + 2 * width
    if encoder.patch:
        stem += 3 * encoder.frames * encoder.patch**2 * width + (width if encoder.bias else 0)
    return stem
