"""A model of which only the memory is known, as the fleet file states it."""

from rayhelm.facts.model import Attention, Checkpoint, StatedMemory
from rayhelm.facts.tasks import Task

__all__ = ["UNCHECKED", "build_stated_model"]

UNCHECKED = "unchecked"
"""Architecture of such a model."""
_LAYERS, _HIDDEN, _INTERMEDIATE, _VOCAB, _HEADS = 64, 8192, 28672, 152064, 64
"""Shape of a dense model of 70 billion parameters, for the working memory and the speed. Smaller models need less."""


def build_stated_model(name: str, memory: StatedMemory, *, kv_heads: int, context: int, task: Task) -> Checkpoint:
    """Return a record with the stated weights and cache, in equal layers. `context` in tokens."""
    return Checkpoint(
        id=name,
        tasks=(task,),
        architecture=UNCHECKED,
        layers=_LAYERS,
        hidden=_HIDDEN,
        intermediate=_INTERMEDIATE,
        vocab=_VOCAB,
        max_context=context,
        attention=Attention(heads=kv_heads * -(-_HEADS // kv_heads), kv_heads=kv_heads, head_dim=128),
        stated=memory,
        source="`memory` of the fleet file",
    )
