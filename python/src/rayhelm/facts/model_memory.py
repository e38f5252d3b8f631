"""Memory of a model that replaces the formulas: stated by its user, or built with vLLM."""

from pydantic import Field

from rayhelm.facts.closed import Closed

__all__ = ["BuiltMemory", "BuiltRank", "StatedMemory"]


class StatedMemory(Closed):
    """Memory of a model whose architecture cannot be read, as its user states it. It replaces the formulas."""

    weights: float = Field(gt=0, allow_inf_nan=False)
    """Bytes of all weights."""
    kv_per_token: float = Field(ge=0, allow_inf_nan=False)
    """Bytes of the cache of one token, over all layers."""


class BuiltRank(Closed):
    """One tensor-parallel rank of a model, as classes of vLLM build it."""

    tensor_parallel_size: int = Field(ge=1)
    weights: float = Field(gt=0, allow_inf_nan=False)
    """Bytes of its parameters and buffers."""
    kv_per_token: float = Field(ge=0, allow_inf_nan=False)
    """Bytes of its cache of one token, over all layers."""


class BuiltMemory(Closed):
    """Memory of a model that `rayhelm catalog add` built with vLLM. It replaces the formulas; other tensor parallel
    sizes and pipeline stages are refused."""

    engine: str
    """Version of vLLM."""
    context: int = Field(gt=0)
    """Tokens of the request from which `kv_per_token` is taken."""
    ranks: tuple[BuiltRank, ...] = Field(min_length=1)

    def find(self, tp: int) -> BuiltRank | None:
        return next((rank for rank in self.ranks if rank.tensor_parallel_size == tp), None)
