"""Read the quantization of a checkpoint from the `quantization_config` of a config.json."""

import re
from typing import Any

from rayhelm.errors import Fix
from rayhelm.facts._keys import Config
from rayhelm.facts._origin import shown
from rayhelm.facts.model import Quantization

__all__ = ["parse_quantization"]

Stored = dict[str, Any]


def parse_quantization(config: Config, layers: int, *, has_latent_cache: bool = False) -> Quantization | None:
    """Return the quantization, or None if there is no `quantization_config`. `has_latent_cache`: latent attention."""
    key = "quantization_config" if config.has("quantization_config") else "compression_config"
    if not config.has(key):
        return None
    entry = config.part(key)
    if entry.empty:
        return None
    entry = _find_modelopt(entry)
    method = (
        entry.text("quant_method", "modelopt" if entry.has("quant_algo") else "")
        .lower()
        .replace("_tensors", "-tensors")
    )
    method = "modelopt" if method.startswith("modelopt") else method
    if method not in _METHODS:
        known = Fix.advice(f"methods that rayhelm can count: {', '.join(sorted(_METHODS))}")
        raise entry.problem("quant_method", f"{shown(method)} is not known", known)
    stored = _METHODS[method](entry)
    kept = _find_kept_parts(entry, layers, stored)
    return Quantization.model_validate(
        {"method": method, **stored, **kept, "kv_bits": _read_kv_bits(entry, method, has_latent_cache)}
    )


def _find_modelopt(entry: Config) -> Config:
    """Return the keys of ModelOpt, which older versions nest below `quantization`, beside the name of the method."""
    if not entry.is_object("quantization"):
        return entry
    return entry.part("quantization").with_defaults(
        entry.pick("quant_method", "kv_cache_scheme", "kv_cache_quant_algo")
    )


def _read_kv_bits(entry: Config, method: str, has_latent_cache: bool) -> int | None:
    """Return the bits of a cached key with `kv_cache_dtype: auto`; None for 16.

    vLLM takes them from ModelOpt and, for caches that are not latent, from compressed-tensors. It reads no scheme of
    other methods, and falls back to 16 bits for what it does not know of ModelOpt."""
    if method == "modelopt":
        key = "kv_cache_scheme" if entry.has("kv_cache_scheme") else "kv_cache_quant_algo"
        if not entry.is_object(key):
            return _KV_ALGORITHMS.get(entry.text(key, "").lower())
        scheme = entry.part(key)
        bits, is_float = scheme.count("num_bits", 16, most=16), scheme.text("type", "") == "float"
        is_static = scheme.pick("dynamic").get("dynamic") is False
        return bits if is_float and (bits == 4 or (bits == 8 and is_static)) else None
    if method != "compressed-tensors" or has_latent_cache or not entry.has("kv_cache_scheme"):
        return None
    scheme = entry.part("kv_cache_scheme")
    bits = scheme.count("num_bits", most=16)
    if bits != 8:
        raise scheme.problem("num_bits", f"is {bits}: vLLM reads caches of 8 bits", Fix(value=8))
    return 8


def _read_awq(entry: Config) -> Stored:
    bits = _read_bits(entry, "w_bit" if entry.has("w_bit") and not entry.has("bits") else "bits", 4)
    group = _read_group(entry, "q_group_size" if entry.has("q_group_size") else "group_size", 128)
    return {"bits": bits, "group_size": group, "zero_bits": bits if entry.flag("zero_point", True) else 0}


def _read_gptq(entry: Config) -> Stored:
    """Read GPTQ, which stores zero points also for symmetric quantization."""
    bits = _read_bits(entry, "bits")
    return {
        "bits": bits,
        "group_size": _read_group(entry, "group_size"),
        "zero_bits": bits,
        "lm_head": entry.flag("lm_head", False),
    }


def _read_fp8(entry: Config) -> Stored:
    return {"bits": 8, "scale_bits": 32, "block": entry.pair("weight_block_size")}


def _read_mxfp4(_: Config) -> Stored:
    return {"bits": 4, "group_size": 32, "scale_bits": 8, "only_experts": True}


def _read_bitsandbytes(entry: Config) -> Stored:
    """Read bitsandbytes: NF4 and FP4 have a scale per 64 weights, of 8 bits if the scales are quantized too."""
    if not entry.flag("load_in_4bit", False):
        return {"bits": 8, "scale_bits": 32}
    return {"bits": 4, "group_size": 64, "scale_bits": 8 if entry.flag("bnb_4bit_use_double_quant", False) else 32}


def _read_compressed_tensors(entry: Config) -> Stored:
    weights = entry.first_part("config_groups").part("weights")
    bits, kind = _read_bits(weights, "num_bits"), weights.text("type", "int")
    if kind not in ("int", "float"):
        raise weights.problem("type", f"is {shown(kind)}, neither int nor float", Fix(value="int"))
    nvfp4 = kind == "float" and bits == 4
    asymmetric = kind == "int" and not weights.flag("symmetric", True)
    return {
        "bits": bits,
        "weight_type": kind,
        "group_size": _read_group(weights, "group_size"),
        "scale_bits": 8 if nvfp4 else 16,
        "zero_bits": bits if asymmetric else 0,
        "block": weights.pair("block_structure"),
    }


def _read_modelopt(entry: Config) -> Stored:
    algorithm = entry.text("quant_algo", "")
    if "FP4" in algorithm:
        return {"bits": 4, "group_size": 16, "scale_bits": 8}
    if algorithm == "MIXED_PRECISION" and re.search(r"experts'[^}]*FP4", entry.describe("quantized_layers")):
        return {"method": "modelopt_mixed", "bits": 4, "group_size": 16, "scale_bits": 8, "only_experts": True}
    # Mixed precision of other layers counts 8 bits, the most of them.
    return {"bits": 8, "scale_bits": 32} | _METHODS_OF_ALGORITHMS.get(algorithm, {})


_METHODS_OF_ALGORITHMS = {
    "MIXED_PRECISION": {"method": "modelopt_mixed"},
    "MXFP8": {"method": "modelopt_mxfp8"},
}
"""Names that vLLM gives formats of ModelOpt, where it runs them on other GPUs than `modelopt`."""

_KV_ALGORITHMS = {"fp8": 8, "nvfp4": 4}
"""Bits by name, as vllm 0.29 utils/torch_utils.py maps them. Others are not read."""


_METHODS = {
    "awq": _read_awq,
    "gptq": _read_gptq,
    "fp8": _read_fp8,
    "fbgemm_fp8": _read_fp8,
    "mxfp4": _read_mxfp4,
    "bitsandbytes": _read_bitsandbytes,
    "compressed-tensors": _read_compressed_tensors,
    "modelopt": _read_modelopt,
}


def _read_bits(entry: Config, key: str, default: int | None = None) -> int:
    return entry.count(key, default, most=16)


def _read_group(entry: Config, key: str, default: int = -1) -> int | None:
    """Return the weights per scale; None for one scale per channel, which GPTQ writes as -1."""
    size = entry.count(key, default, least=-1)
    return size if size > 0 else None


def _find_kept_parts(entry: Config, layers: int, stored: Stored) -> Stored:
    """Return the parts that stay in the model's dtype, from the modules that the checkpoint excludes."""
    if stored.get("only_experts"):
        return {"attention": False}
    excluded = entry.texts("modules_to_not_convert") or entry.texts("ignore") or entry.texts("exclude_modules")
    if _covers(excluded, "self_attn", layers) and _covers(excluded, "shared_expert", layers):
        return {"attention": False, "only_experts": True}
    attention = {_parse_layer(name) for name in excluded if "self_attn" in name} - {None}
    pattern = any("self_attn" in name and _parse_layer(name) is None for name in excluded)
    mlp = {
        _parse_layer(name)
        for name in excluded
        if re.search(r"\.mlp(\.(gate_proj|up_proj|down_proj|experts)\b.*)?$", name)
    }
    return {
        "attention": not pattern and len(attention) < layers,
        "skip_layers": sorted(layer for layer in mlp if layer is not None),
    }


def _covers(excluded: list[str], part: str, layers: int) -> bool:
    """Return whether a part stays in the model's dtype in most layers, by a pattern or layer by layer."""
    found = [_parse_layer(name) for name in excluded if part in name]
    return None in found or 2 * len(set(found)) > layers


def _parse_layer(module: str) -> int | None:
    found = re.search(r"\blayers\.(\d{1,6})\.", module)
    return int(found.group(1)) if found else None
