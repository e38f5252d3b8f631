"""Layout of vLLM's KV cache: blocks of tokens, layers in groups that share a block table, one pool of blocks.

The layers of a group hold the same tokens. Layers with full attention, with a sliding window, with cross-attention and
with a recurrent state form groups of equal size; a request takes blocks for each group. A block has the same bytes in
each group: kinds with smaller pages get larger blocks or padding, and a recurrent state takes one page.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import ceil
from typing import Literal

from rayhelm.facts.engines import EngineConstants
from rayhelm.facts.model import Checkpoint
from rayhelm.planner.memory.kv_cache_types import count_head_bytes, count_latent_bytes, resolve_kv_cache_dtype
from rayhelm.planner.memory.parallelism import find_partition
from rayhelm.planner.memory.recurrent_state import count_state_bytes
from rayhelm.planner.shape import ReplicaShape

__all__ = ["Group", "KvCache", "count_token_bytes", "lay_out_kv_cache"]

Kind = Literal["full", "window", "cross", "recurrent"]

_LATENT_ALIGNMENT = 128
"""Tokens. Blocks of latent cache beside recurrent states are multiples of this."""
_INDEXER_SCALE_BYTES = 4
"""Of one scale for 128 elements of the indexer's key, which has 8 bits."""


@dataclass(frozen=True)
class Group:
    """Layers that share a block table."""

    kind: Kind
    layers: tuple[int, ...]
    """How many of them lie on each pipeline stage."""
    block_size: int
    """Tokens of a block."""


@dataclass(frozen=True)
class KvCache:
    """The cache of one model under one split."""

    block_size: int
    """Tokens of a block of layers with full attention."""
    page_bytes: int
    """Bytes of one layer's part of a block, on one GPU."""
    groups: tuple[Group, ...]
    window: int
    indexer_bytes: tuple[int, ...]
    """Bytes of the indexer's part of a block, per stage; 0 without one."""
    states: int
    """Blocks of recurrent state of one request in each group."""

    def block_bytes(self, stage: int) -> int:
        """Return the bytes of one block of the pool on a GPU of a stage: those of its largest group."""
        return max(group.layers[stage] for group in self.groups) * self.page_bytes + self.indexer_bytes[stage]

    def token_bytes(self, stage: int) -> int:
        """Return the bytes of one more token on a GPU of a stage, while sliding windows are not full."""
        growing = (group for group in self.groups if group.kind in ("full", "window"))
        keys = sum(group.layers[stage] * (self.page_bytes // group.block_size) for group in growing)
        return keys + self.indexer_bytes[stage] // self.block_size

    def request_blocks(self, context: int, *, in_flight: int, batch: int, ranks: int = 1) -> int:
        """Return the blocks of one request of `context` tokens at its peak. `in_flight`: tokens scheduled ahead, whose
        blocks windowed layers keep; `batch`: max_num_batched_tokens, which bounds what an encoder puts in at once;
        `ranks`: decode context parallel size, over which full attention spreads the tokens."""
        return sum(self._count_request_blocks(group, context, in_flight, batch, ranks) for group in self.groups)

    def _count_request_blocks(self, group: Group, context: int, in_flight: int, batch: int, ranks: int) -> int:
        match group.kind:
            case "full":
                return _count_blocks(_count_blocks(context, ranks), group.block_size)
            case "window":
                return _count_blocks(min(self.window - 1 + in_flight, context), group.block_size) + 1
            case "cross":
                return _count_blocks(batch, group.block_size)
            case "recurrent":
                return self.states

    def largest_context(self, blocks: int, limit: int, *, in_flight: int, batch: int, ranks: int = 1) -> int:
        """Return the longest request, up to `limit` tokens, that fits in `blocks`; 0 if no token fits."""
        low, high = 0, limit
        while low < high:
            middle = (low + high + 1) // 2
            fits = self.request_blocks(middle, in_flight=in_flight, batch=batch, ranks=ranks) <= blocks
            low, high = (middle, high) if fits else (low, middle - 1)
        return low


@lru_cache(maxsize=4096)
def lay_out_kv_cache(
    model: Checkpoint, tp: int, partition: tuple[int, ...], kv_cache_dtype: str, engine: EngineConstants
) -> KvCache | None:
    """Return the layout; None for a model without a cache (encoder-only) or that vLLM does not serve.

    Raises FleetError for an unknown `kv_cache_dtype`.
    """
    dtype = resolve_kv_cache_dtype(model, kv_cache_dtype)
    if not model.causal or model.engine == "custom":
        return None
    members = _group_by_kind(model, engine)
    growing: list[Kind] = [kind for kind in members if kind != "recurrent"]
    per_token = {kind: _count_token_bytes(model, tp, kind, dtype) for kind in growing}
    if kept := len(model.windowed_layers.intersection(members.get("full", ()))):
        per_token["full"] = _average_token_bytes(model, tp, dtype, kept, len(members["full"]))
    state = count_state_bytes(model.recurrence, tp) if model.recurrence else 0
    block_size = _find_block_size(model, engine, per_token, state)
    page = max([state, *(block_size * each for each in per_token.values())])
    sizes = {kind: _enlarge_block(block_size, block_size * each, page) for kind, each in per_token.items()}
    return KvCache(
        block_size=block_size,
        page_bytes=page,
        groups=_build_groups(members, partition, {"recurrent": block_size, **sizes}),
        window=model.attention.sliding_window or model.max_context,
        indexer_bytes=_count_indexer_bytes(model, partition, block_size),
        states=engine.recurrent_blocks if per_token else 1,
    )


def count_token_bytes(model: Checkpoint, shape: ReplicaShape, kv_cache_dtype: str, engine: EngineConstants) -> int:
    """Return the bytes of one token in the caches of one GPU of each stage; 0 for a model without a cache."""
    cache = lay_out_kv_cache(model, shape.tp, find_partition(model, shape), kv_cache_dtype, engine)
    return sum(cache.token_bytes(stage) for stage in range(shape.pp)) if cache else 0


def _find_block_size(model: Checkpoint, engine: EngineConstants, per_token: dict[Kind, int], state: int) -> int:
    """Return the tokens of a block. Beside recurrent states it is enlarged until a block of attention holds one."""
    size = engine.latent_block_size if model.attention.mla else engine.block_size
    if not state or not per_token:
        return size
    step = max(size, _LATENT_ALIGNMENT) if model.attention.mla else size
    return max(size, step * _count_blocks(state, step * max(per_token.values())))


def _enlarge_block(block_size: int, own_page: int, page: int) -> int:
    """Return the tokens of a block whose pages are smaller than the largest; it is padded where that is no multiple."""
    return block_size if page % own_page else block_size * (page // own_page)


def _count_token_bytes(model: Checkpoint, tp: int, kind: Kind, dtype: str) -> int:
    """Return bytes per token and layer on one GPU. Stated ones do not depend on kv_cache_dtype."""
    if model.stated and model.built and (built := model.built.find(tp)):
        return max(1, ceil(built.kv_per_token / model.layers))
    if model.stated:
        parts = model.layers * min(tp, model.attention.kv_heads)
        return max(1, ceil(model.stated.kv_per_token / parts))
    return _count_cached_bytes(model, tp, kind, dtype)


def _average_token_bytes(model: Checkpoint, tp: int, dtype: str, windowed: int, layers: int) -> int:
    """Return bytes per token and layer where windowed layers keep all tokens: vLLM puts them into one group with the
    others, each with pages of its own width."""
    sizes = (_count_token_bytes(model, tp, kind, dtype) for kind in ("window", "full"))
    return ceil(sum(size * count for size, count in zip(sizes, (windowed, layers - windowed), strict=True)) / layers)


def _count_cached_bytes(model: Checkpoint, tp: int, kind: Kind, dtype: str) -> int:
    """Return bytes per token and layer on one GPU. Every rank holds the whole latent of MLA."""
    attention = model.attention
    if mla := attention.mla:
        latent = mla.kv_lora_rank + mla.qk_rope_head_dim
        return count_latent_bytes(dtype, latent, is_sparse=mla.indexer is not None)
    own = attention.full if kind == "full" else None
    heads, width = (own.kv_heads, own.head_dim) if own else (attention.kv_heads, attention.head_dim)
    return max(1, heads // tp) * count_head_bytes(dtype, width, attention.value_dim or width)


def _count_indexer_bytes(model: Checkpoint, partition: tuple[int, ...], block_size: int) -> tuple[int, ...]:
    indexer = model.attention.mla.indexer if model.attention.mla else None
    if indexer is None:
        return (0,) * len(partition)
    per_token = indexer.head_dim + _count_blocks(indexer.head_dim, 128) * _INDEXER_SCALE_BYTES
    return tuple(count * per_token * block_size for count in _count_per_stage(range(indexer.layers), partition))


def _group_by_kind(model: Checkpoint, engine: EngineConstants) -> dict[Kind, list[int]]:
    """Return the layers of each kind. Layers that read the cache of another layer have none of their own."""
    own = [layer for layer in model.attention_layers if layer < model.layers - model.attention.cache_shared_layers]
    # Without a hybrid cache, windowed layers keep all tokens where other layers have full attention.
    is_kept = engine.hybrid_cache or len(model.windowed_layers) == len(model.attention_layers)
    windowed = model.windowed_layers if is_kept else frozenset()
    kinds: dict[Kind, list[int]] = {
        "full": [layer for layer in own if layer not in windowed],
        "window": [layer for layer in own if layer in windowed],
        "recurrent": sorted(model.recurrent_layers),
    }
    if model.encoder and model.encoder.cross_attention:
        kinds["cross"] = own
    return {kind: members for kind, members in kinds.items() if members}


def _build_groups(
    kinds: dict[Kind, list[int]], partition: tuple[int, ...], block_sizes: dict[Kind, int]
) -> tuple[Group, ...]:
    """Return the groups of the size of the smallest kind, or of the largest one if sizes differ by less than half."""
    counts = [len(members) for members in kinds.values()]
    size = max(counts) if max(counts) < 1.5 * min(counts) else min(counts)
    groups = []
    for kind, members in kinds.items():
        number = _count_blocks(len(members), size)
        groups += [
            Group(kind, _count_per_stage(members[i::number], partition), block_sizes[kind]) for i in range(number)
        ]
    return tuple(groups)


def _count_per_stage(members: Sequence[int], partition: tuple[int, ...]) -> tuple[int, ...]:
    ends = [bisect_left(members, end) for end in accumulate(partition)]
    return tuple(end - start for start, end in zip([0, *ends], ends, strict=False))


def _count_blocks(tokens: int, size: int) -> int:
    return -(-tokens // size)
