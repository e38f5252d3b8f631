"""How a checkpoint is quantised, read out of the `quantization_config` of a config.json."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rayhelm.catalog.model import Quantization
from rayhelm.errors import FleetError, Problem

__all__ = ["quantization_of"]

_Entry = Mapping[str, Any]


def quantization_of(config: _Entry, layers: int, where: str) -> Quantization | None:
    """What `quantization_config` says, or None when there is none."""
    entry = config.get("quantization_config") or config.get("compression_config")
    if not entry:
        return None
    if not isinstance(entry, Mapping):
        raise FleetError(Problem("is no object", path="quantization_config", file=where))
    method = str(entry.get("quant_method") or ("modelopt" if "quant_algo" in entry else ""))
    if method not in _METHODS:
        known = ", ".join(sorted(_METHODS))
        raise FleetError(
            Problem(
                f"quantisation method {method!r} is not known",
                path="quantization_config.quant_method",
                file=where,
                mend=f"known: {known}",
            )
        )
    try:
        stored = _METHODS[method](entry)
        return Quantization.model_validate({"method": method, **stored, **_kept(entry, layers, stored)})
    except (AttributeError, KeyError, StopIteration, TypeError, ValueError) as error:
        message = f"cannot be read as {method}: {type(error).__name__} {error}"
        raise FleetError(Problem(message, path="quantization_config", file=where)) from None


def _awq(entry: _Entry) -> dict[str, Any]:
    bits = entry.get("bits", entry.get("w_bit", 4))
    group = entry.get("group_size", entry.get("q_group_size", 128))
    return {"bits": bits, "group_size": _group(group), "zero_bits": bits if entry.get("zero_point", True) else 0}


def _gptq(entry: _Entry) -> dict[str, Any]:
    """GPTQ stores zero points even when it quantises symmetrically."""
    return {
        "bits": entry["bits"],
        "group_size": _group(entry.get("group_size", -1)),
        "zero_bits": entry["bits"],
        "lm_head": bool(entry.get("lm_head", False)),
    }


def _fp8(entry: _Entry) -> dict[str, Any]:
    return {"bits": 8, "scale_bits": 32, "block": entry.get("weight_block_size")}


def _mxfp4(_: _Entry) -> dict[str, Any]:
    return {"bits": 4, "group_size": 32, "scale_bits": 8, "only_experts": True}


def _bitsandbytes(entry: _Entry) -> dict[str, Any]:
    """NF4 and FP4 share one scale among 64 weights; a second quantisation squeezes that scale to 8 bits."""
    if not entry.get("load_in_4bit", False):
        return {"bits": 8, "scale_bits": 32}
    return {"bits": 4, "group_size": 64, "scale_bits": 8 if entry.get("bnb_4bit_use_double_quant") else 32}


def _compressed_tensors(entry: _Entry) -> dict[str, Any]:
    weights = next(iter(entry["config_groups"].values()))["weights"]
    bits, group = weights["num_bits"], weights.get("group_size")
    nvfp4 = weights.get("type") == "float" and bits == 4
    asymmetric = weights.get("type") == "int" and not weights.get("symmetric", True)
    return {
        "bits": bits,
        "group_size": _group(group),
        "scale_bits": 8 if nvfp4 else 16,
        "zero_bits": bits if asymmetric else 0,
        "block": weights.get("block_structure"),
    }


def _modelopt(entry: _Entry) -> dict[str, Any]:
    if "FP4" in str(entry.get("quant_algo", "")):
        return {"bits": 4, "group_size": 16, "scale_bits": 8}
    return {"bits": 8, "scale_bits": 32}


_METHODS = {
    "awq": _awq,
    "gptq": _gptq,
    "fp8": _fp8,
    "fbgemm_fp8": _fp8,
    "mxfp4": _mxfp4,
    "bitsandbytes": _bitsandbytes,
    "compressed-tensors": _compressed_tensors,
    "modelopt": _modelopt,
}


def _group(size: int | None) -> int | None:
    """-1 is how GPTQ writes one scale per channel."""
    return size if size and size > 0 else None


def _kept(entry: _Entry, layers: int, stored: _Entry) -> dict[str, Any]:
    """Which parts stay in the model's dtype, by the modules that the checkpoint excludes."""
    if stored.get("only_experts"):
        return {"attention": False}
    excluded: Sequence[str] = entry.get("modules_to_not_convert") or entry.get("ignore") or ()
    attention = {_layer(name) for name in excluded if "self_attn" in name} - {None}
    pattern = any("self_attn" in name and _layer(name) is None for name in excluded)
    mlp = {
        _layer(name) for name in excluded if re.search(r"\.mlp(\.(gate_proj|up_proj|down_proj|experts)\b.*)?$", name)
    }
    return {
        "attention": not pattern and len(attention) < layers,
        "skip_layers": sorted(layer for layer in mlp if layer is not None),
    }


def _layer(module: str) -> int | None:
    found = re.search(r"\blayers\.(\d+)\.", module)
    return int(found.group(1)) if found else None
