"""Weights by tensor: how many parameters and bytes each part of a model has, and how tensor parallelism cuts it."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from rayhelm.catalog.model import Model

__all__ = ["Shard", "Tensor", "Weights", "weights"]

Shard = Literal["split", "kv", "vocab", "replicated"]
"""split: divided by TP · kv: divided by TP up to the KV heads, then replicated · vocab: divided after padding the
vocabulary to a multiple · replicated: whole on every rank (norms, routers, MLA's down-projections)."""


@dataclass(frozen=True)
class Tensor:
    """A weight, or several of one kind in one layer taken together."""

    name: str
    """Role, for humans: `attention.q`, `experts.down`."""
    parameters: int
    bytes: float
    """As stored on the card, scales and zero points included."""
    shard: Shard


@dataclass(frozen=True)
class Weights:
    """All weights of a model, in the order in which pipeline stages hold them."""

    embedding: tuple[Tensor, ...]
    """First stage: token (and position) embeddings, encoders."""
    layers: tuple[tuple[Tensor, ...], ...]
    """One tuple per decoder layer."""
    final: tuple[Tensor, ...]
    """Last stage: final norm, output head. With tied embeddings the head is listed with 0 parameters and its bytes,
    as vLLM holds the embedding on the last stage again when there is more than one stage."""

    @property
    def parameters(self) -> int: ...
