"""Bytes of keys and values by `kv_cache_dtype`, as the attention backends of vLLM store them."""

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.facts.model import Checkpoint

__all__ = ["KV_CACHE_DTYPES", "count_head_bytes", "count_latent_bytes", "resolve_kv_cache_dtype"]

_SCALE_BYTES = 8
"""Of a key and its value: one scale of 32 bits each (`customize_spec` of vLLM's Triton and MLA backends)."""
_BITS = {
    "bfloat16": 16, "float16": 16, "fp8": 8, "fp8_e4m3": 8, "fp8_e5m2": 8, "nvfp4": 4, "nvfp4_4over6": 4,
    "fp8_per_token_head": 8, "int8_per_token_head": 8, "int4_per_token_head": 4,
}  # fmt: skip
KV_CACHE_DTYPES = ("auto", *_BITS)
"""Types whose size is known. `auto` follows the checkpoint: `kv_bits` of its quantization, else 16 bits."""
_SPARSE_LATENT_BYTES = 656
"""Of a latent in 8 bits with its scales, for sparse attention: the layout `fp8_ds_mla`."""
_BY_BITS = {8: "fp8", 4: "nvfp4", None: "bfloat16"}


def resolve_kv_cache_dtype(model: Checkpoint, kv_cache_dtype: str) -> str:
    """Return the type that vLLM uses. Raises FleetError for an unknown one."""
    if kv_cache_dtype not in KV_CACHE_DTYPES:
        raise FleetError(
            Problem(
                f"unknown kv_cache_dtype {kv_cache_dtype!r}",
                fix=Fix("kv_cache_dtype", "auto", f"or {', '.join(KV_CACHE_DTYPES[1:])}"),
            )
        )
    if kv_cache_dtype != "auto":
        return kv_cache_dtype
    return _BY_BITS[model.quantization.kv_bits if model.quantization else None]


def count_head_bytes(kv_cache_dtype: str, key: int, value: int) -> int:
    """Return the bytes of one token of one head with a key and a value of these widths."""
    if kv_cache_dtype.startswith("nvfp4"):
        return sum(width // 2 + width // 16 for width in (key, value))
    return _count_data_bytes(kv_cache_dtype, key + value) + _count_scale_bytes(kv_cache_dtype)


def count_latent_bytes(kv_cache_dtype: str, width: int, *, is_sparse: bool) -> int:
    """Return the bytes of one token of latent attention (MLA). A latent has no type below 8 bits but
    `int4_per_token_head`."""
    if is_sparse and kv_cache_dtype.startswith("fp8"):
        return max(_SPARSE_LATENT_BYTES, width)
    if kv_cache_dtype.startswith("nvfp4"):
        return width
    return _count_data_bytes(kv_cache_dtype, width) + _count_scale_bytes(kv_cache_dtype)


def _count_data_bytes(kv_cache_dtype: str, elements: int) -> int:
    return elements * _BITS[kv_cache_dtype] // 8


def _count_scale_bytes(kv_cache_dtype: str) -> int:
    return _SCALE_BYTES if kv_cache_dtype.endswith("_per_token_head") else 0
