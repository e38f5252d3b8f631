"""Engine arguments with which vLLM turns its hybrid cache manager off."""

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["find_hybrid_cache_limit"]

_WITHOUT = frozenset(
    {"ExampleConnector", "FlexKVConnectorV1", "HF3FSKVConnector", "LMCacheConnectorV1", "MoRIIOConnector"}
)
"""Connectors without `SupportsHMA` in vllm 0.29 distributed/kv_transfer/kv_connector/v1."""


def find_hybrid_cache_limit(engine: Mapping[str, Any]) -> str:
    """Return the argument that turns it off, so that layers with a sliding window cache all tokens; empty if none
    does. A `disable_hybrid_kv_cache_manager` that is stated comes first."""
    stated = engine.get("disable_hybrid_kv_cache_manager")
    if isinstance(stated, bool):
        return "disable_hybrid_kv_cache_manager: true" if stated else ""
    return next(
        (f"kv_connector: {name}" for name in _list_connectors(engine.get("kv_transfer_config")) if name in _WITHOUT), ""
    )


def _list_connectors(transfer: Any) -> Iterator[str]:
    if not isinstance(transfer, Mapping):
        return
    yield str(transfer.get("kv_connector") or "")
    extra = transfer.get("kv_connector_extra_config")
    nested = extra.get("connectors") if isinstance(extra, Mapping) else None
    for each in nested if isinstance(nested, list) else ():
        yield from _list_connectors(each)
