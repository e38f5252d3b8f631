"""Layout of vLLM's KV cache: blocks of tokens, layers in groups that share a block table, one pool of blocks.

The layers of a group hold the same tokens. Layers with full attention, with a sliding window and with cross-attention
form groups of equal size; a request takes blocks for each group.
"""

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Literal

from rayhelm.catalog.engines import EngineConstants
from rayhelm.catalog.model import Checkpoint
from rayhelm.errors import Fix, FleetError, Problem

__all__ = ["Group", "KvCache", "lay_out_kv_cache"]

Kind = Literal["full", "window", "cross"]

_BYTES = {"auto": 2, "bfloat16": 2, "float16": 2, "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1}
"""Bytes of an element by kv_cache_dtype. `auto` follows the checkpoint: 16 bits for all in the catalog."""


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
    """Bytes of one layer's part of a block, on one GPU."""
    groups: tuple[Group, ...]
    window: int

    def block_bytes(self, stage: int) -> int:
        """Return the bytes of one block of the pool on a GPU of a stage: those of its largest group."""
        return max(group.layers[stage] for group in self.groups) * self.page_bytes

    def token_bytes(self, stage: int) -> int:
        """Return the bytes of one more token on a GPU of a stage, while sliding windows are not full."""
        return sum(group.layers[stage] for group in self.groups if group.kind != "cross") * (
            self.page_bytes // self.block_size
        )

    def request_blocks(self, context: int, *, in_flight: int, batch: int) -> int:
        """Return the blocks of one request of `context` tokens at its peak. `in_flight`: tokens scheduled ahead, whose
        blocks windowed layers keep; `batch`: max_num_batched_tokens, which bounds what an encoder puts in at once."""
        per_kind = {
            "full": _count_blocks(context, self.block_size),
            "window": _count_blocks(min(self.window - 1 + in_flight, context), self.block_size) + 1,
            "cross": _count_blocks(batch, self.block_size),
        }
        return sum(per_kind[group.kind] for group in self.groups)

    def largest_context(self, blocks: int, limit: int, *, in_flight: int, batch: int) -> int:
        """Return the longest request, up to `limit` tokens, that fits in `blocks`; 0 if no token fits."""
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
    """Return the layout; None for a model without a cache (encoder-only) or that vLLM does not serve.

    Raises FleetError for an unknown `kv_cache_dtype`.
    """
    if kv_cache_dtype not in _BYTES:
        raise FleetError(
            Problem(
                f"unknown kv_cache_dtype {kv_cache_dtype!r}",
                fix=Fix("kv_cache_dtype", "auto", f"or {', '.join(list(_BYTES)[1:])}"),
            )
        )
    if not model.causal or model.engine == "custom":
        return None
    block_size = engine.latent_block_size if model.attention.mla else engine.block_size
    return KvCache(
        block_size=block_size,
        page_bytes=block_size * _count_elements_per_token(model, tp) * _BYTES[kv_cache_dtype],
        groups=_build_groups(_group_by_kind(model, engine), partition),
        window=model.attention.sliding_window or model.max_context,
    )


def _count_elements_per_token(model: Checkpoint, tp: int) -> int:
    """Return elements per token and layer on one GPU. Every rank holds the whole latent of MLA."""
    if mla := model.attention.mla:
        return mla.kv_lora_rank + mla.qk_rope_head_dim
    return 2 * max(1, model.attention.kv_heads // tp) * model.attention.head_dim


def _group_by_kind(model: Checkpoint, engine: EngineConstants) -> dict[Kind, list[int]]:
    """Return the layers of each kind. Windowed layers are assumed evenly spread: the catalog has only their number, and
    only the split over pipeline stages depends on their position."""
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


def _build_groups(kinds: dict[Kind, list[int]], partition: tuple[int, ...]) -> tuple[Group, ...]:
    """Return the groups of the size of the smallest kind, or of the largest one if sizes differ by less than half."""
    counts = [len(members) for members in kinds.values()]
    size = max(counts) if max(counts) < 1.5 * min(counts) else min(counts)
    groups = []
    for kind, members in kinds.items():
        number = _count_blocks(len(members), size)
        groups += [Group(kind, _count_per_stage(members[i::number], partition)) for i in range(number)]
    return tuple(groups)


def _count_per_stage(members: list[int], partition: tuple[int, ...]) -> tuple[int, ...]:
    ends = [bisect_left(members, end) for end in accumulate(partition)]
    return tuple(end - start for start, end in zip([0, *ends], ends, strict=False))


def _count_blocks(tokens: int, size: int) -> int:
    return -(-tokens // size)
