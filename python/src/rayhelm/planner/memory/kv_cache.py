"""How vLLM lays out the KV cache: blocks of tokens, layers in groups that share a block, one pool for all.

All layers of a group hold the same tokens, so they share a block table. Layers that see everything, windowed layers
and cross-attention form groups of equal size; each group takes blocks of its own from the pool for a request.
"""

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Literal

from rayhelm.catalog.engines import EngineConstants
from rayhelm.catalog.model import Checkpoint
from rayhelm.errors import FleetError, Problem

__all__ = ["Group", "KvCache", "lay_out_kv_cache"]

Kind = Literal["full", "window", "cross"]

_BYTES = {"auto": 2, "bfloat16": 2, "float16": 2, "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1}
"""Bytes of an element by kv_cache_dtype. `auto` follows the checkpoint, whose cache is in 16 bits unless it says so."""


@dataclass(frozen=True)
class Group:
    """Layers that share a block table."""

    kind: Kind
    layers: tuple[int, ...]
    """How many of them lie on each pipeline stage."""


@dataclass(frozen=True)
class KvCache:
    """The cache of one model under one split."""

    block_size: int
    """Tokens of a block."""
    page_bytes: int
    """Bytes of one layer's part of a block, on one card."""
    groups: tuple[Group, ...]
    window: int

    def block_bytes(self, stage: int) -> int:
        """Bytes that one block of the pool takes on a card of a stage: those of its largest group."""
        return max(group.layers[stage] for group in self.groups) * self.page_bytes

    def token_bytes(self, stage: int) -> int:
        """Bytes that one more token takes on a card of a stage, while windows are not yet full."""
        return sum(group.layers[stage] for group in self.groups if group.kind != "cross") * (
            self.page_bytes // self.block_size
        )

    def request_blocks(self, context: int, *, in_flight: int, batch: int) -> int:
        """Blocks of one request of `context` tokens at its peak. `in_flight`: tokens scheduled ahead, whose blocks
        windowed layers keep; `batch`: max_num_batched_tokens, which bounds what an encoder puts in at once."""
        per_kind = {
            "full": _blocks(context, self.block_size),
            "window": _blocks(min(self.window - 1 + in_flight, context), self.block_size) + 1,
            "cross": _blocks(batch, self.block_size),
        }
        return sum(per_kind[group.kind] for group in self.groups)

    def largest_context(self, blocks: int, limit: int, *, in_flight: int, batch: int) -> int:
        """Longest request, up to `limit` tokens, that `blocks` hold; 0 when not even one token fits."""
        low, high = 0, limit
        while low < high:
            middle = (low + high + 1) // 2
            fits = self.request_blocks(middle, in_flight=in_flight, batch=batch) <= blocks
            low, high = (middle, high) if fits else (low, middle - 1)
        return low


@lru_cache(maxsize=4096)
def lay_out_kv_cache(
    model: Checkpoint, tp: int, partition: tuple[int, ...], kv_cache_dtype: str, engine: EngineConstants
) -> KvCache | None:
    """The layout, or None for a model that caches nothing (encoder-only) or that vLLM does not run."""
    if kv_cache_dtype not in _BYTES:
        raise FleetError(Problem(f"unknown kv_cache_dtype {kv_cache_dtype!r}", fix=f"one of {', '.join(_BYTES)}"))
    if not model.causal or model.engine == "custom":
        return None
    block_size = engine.latent_block_size if model.attention.mla else engine.block_size
    return KvCache(
        block_size=block_size,
        page_bytes=block_size * _per_token(model, tp) * _BYTES[kv_cache_dtype],
        groups=_groups(_kinds(model, engine), partition),
        window=model.attention.sliding_window or model.max_context,
    )


def _per_token(model: Checkpoint, tp: int) -> int:
    """Elements per token and layer on one card. The latent of MLA is whole on every rank."""
    if mla := model.attention.mla:
        return mla.kv_lora_rank + mla.qk_rope_head_dim
    return 2 * max(1, model.attention.kv_heads // tp) * model.attention.head_dim


def _kinds(model: Checkpoint, engine: EngineConstants) -> dict[Kind, list[int]]:
    """Layers of each kind. Windowed ones are spread evenly: only their number is known, and only the split over
    pipeline stages depends on where they lie."""
    layers = range(model.layers)
    full = model.layers - (model.attention.windowed_layers if engine.hybrid_cache else 0)
    sees_all = [(layer + 1) * full // model.layers > layer * full // model.layers for layer in layers]
    kinds: dict[Kind, list[int]] = {
        "full": [layer for layer in layers if sees_all[layer]],
        "window": [layer for layer in layers if not sees_all[layer]],
    }
    if model.encoder and model.encoder.cross_attention:
        kinds["cross"] = list(layers)
    return {kind: members for kind, members in kinds.items() if members}


def _groups(kinds: dict[Kind, list[int]], partition: tuple[int, ...]) -> tuple[Group, ...]:
    """Cut each kind into groups of the smallest kind's size, or of the largest's where they hardly differ."""
    counts = [len(members) for members in kinds.values()]
    size = max(counts) if max(counts) < 1.5 * min(counts) else min(counts)
    groups = []
    for kind, members in kinds.items():
        number = _blocks(len(members), size)
        groups += [Group(kind, _per_stage(members[i::number], partition)) for i in range(number)]
    return tuple(groups)


def _per_stage(members: list[int], partition: tuple[int, ...]) -> tuple[int, ...]:
    ends = [bisect_left(members, end) for end in accumulate(partition)]
    return tuple(end - start for start, end in zip([0, *ends], ends, strict=False))


def _blocks(tokens: int, size: int) -> int:
    return -(-tokens // size)
