"""Memory of the node for a KV cache that vLLM moves out of the GPU."""

from collections.abc import Mapping
from typing import Any, TypeGuard

__all__ = ["count_offloaded_bytes"]

_TOTAL = "cpu_bytes_to_use"
_PER_RANK = "cpu_bytes_to_use_per_rank"
_LMCACHE_GIB = "lmcache.max_local_cpu_size"
_GIB = 2**30


def count_offloaded_bytes(engine: Mapping[str, Any], gpus: int) -> float | None:
    """Return the bytes of all workers of one engine with `gpus` GPUs; None if it offloads and the arguments state no
    size above 0.

    vLLM counts `kv_offloading_size` and `cpu_bytes_to_use` for all workers together, LMCache its size for each.
    """
    size = engine.get("kv_offloading_size")
    if size is not None:
        # The server of LMCache, which is not in the pod, holds its cache.
        is_native = engine.get("kv_offloading_backend", "native") == "native"
        return size * _GIB if is_native and _is_size(size) else None
    transfer = engine.get("kv_transfer_config")
    return _count_connector(transfer, gpus) if isinstance(transfer, Mapping) else 0.0


def _count_connector(transfer: Mapping[str, Any], gpus: int) -> float | None:
    name, extra = str(transfer.get("kv_connector") or ""), transfer.get("kv_connector_extra_config")
    extra = extra if isinstance(extra, Mapping) else {}
    if name == "MultiConnector":
        parts = [_count_connector(each, gpus) for each in extra.get("connectors") or () if isinstance(each, Mapping)]
        return None if None in parts else sum(part or 0.0 for part in parts)
    if "Offload" in name:
        if _is_size(extra.get(_PER_RANK)):
            return float(extra[_PER_RANK]) * gpus
        return float(extra[_TOTAL]) if _is_size(extra.get(_TOTAL)) else None
    if name.startswith("LMCache"):
        return float(extra[_LMCACHE_GIB]) * _GIB * gpus if _is_size(extra.get(_LMCACHE_GIB)) else None
    return 0.0


def _is_size(value: object) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
