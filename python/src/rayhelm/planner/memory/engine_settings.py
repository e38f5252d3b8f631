"""Settings of an engine that its memory depends on, as a fleet file, a query or options give them."""

from collections.abc import Mapping
from dataclasses import dataclass

from rayhelm.planner.memory.adapter_slots import AdapterSlots
from rayhelm.planner.memory.hybrid_cache import find_hybrid_cache_limit

__all__ = ["EngineSettings", "read_settings"]


@dataclass(frozen=True)
class EngineSettings:
    """Settings of one engine. None: the default of vLLM for an API server on the smallest GPU."""

    utilization: float | None = None
    """Part of each GPU's memory that the engine may use, 0 to 1; of the engine's own part with `fraction`."""
    fraction: float = 1.0
    """Part of each GPU that the engine has, 0 to 1."""
    context: int | None = None
    seqs: int | None = None
    tokens: int | None = None
    """Of one engine step."""
    kv_cache_dtype: str = "auto"
    eager: bool = False
    dcp: int = 1
    """Decode context parallel size: TP ranks over which the tokens of a request are spread."""
    moe_backend: str = "auto"
    """Kernel of fused experts; it decides how experts in MXFP4 are padded."""
    lacks_hybrid_cache: bool = False
    """Layers with a sliding window cache all tokens."""
    adapters: AdapterSlots | None = None
    """Slots of LoRA adapters, if the model has any."""


def read_settings(engine: Mapping[str, object]) -> EngineSettings:
    """Return the settings in arguments of vLLM. Values of another type count as absent."""
    utilization = engine.get("gpu_memory_utilization")
    return EngineSettings(
        utilization=utilization if isinstance(utilization, (int, float)) else None,
        context=_read_count(engine, "max_model_len"),
        seqs=_read_count(engine, "max_num_seqs"),
        tokens=_read_count(engine, "max_num_batched_tokens"),
        kv_cache_dtype=str(engine.get("kv_cache_dtype") or "auto"),
        eager=bool(engine.get("enforce_eager")),
        dcp=_read_count(engine, "decode_context_parallel_size") or 1,
        moe_backend=str(engine.get("moe_backend") or "auto"),
        lacks_hybrid_cache=bool(find_hybrid_cache_limit(engine)),
    )


def _read_count(engine: Mapping[str, object], key: str) -> int | None:
    value = engine.get(key)
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
