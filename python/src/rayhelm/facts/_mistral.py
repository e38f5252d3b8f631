"""Convert `params.json`, Mistral's own format, into the keys of a config.json, as vLLM does."""

from collections.abc import Mapping
from typing import Any

from rayhelm.errors import Fix
from rayhelm.facts._origin import Origin, shown

__all__ = ["convert_params"]

_KEYS = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "hidden_dim": "intermediate_size",
    "tied_embeddings": "tie_word_embeddings",
}
_EXPERT_KEYS = {
    "num_experts_per_tok": "num_experts_per_tok",
    "num_experts": "n_routed_experts",
    "expert_hidden_dim": "moe_intermediate_size",
    "num_shared_experts": "n_shared_experts",
    "first_k_dense_replace": "first_k_dense_replace",
}
_DEFAULT_CONTEXT = 128_000
"""Of vllm 0.29 transformers_utils/configs/mistral.py, the source of this module."""


def convert_params(params: Mapping[str, Any], origin: Origin) -> dict[str, Any]:
    """Return the keys. Raises FleetError for a format of weights that vLLM does not read there."""
    keys = {_KEYS.get(key, key): value for key, value in params.items()}
    keys.setdefault("max_position_embeddings", _DEFAULT_CONTEXT)
    keys |= _convert_windows(keys) | _convert_experts(keys) | _convert_positions(keys) | _convert_weights(keys, origin)
    vision = keys.pop("vision_encoder", None)
    multimodal = keys.pop("multimodal", None)
    if isinstance(multimodal, Mapping):
        vision = multimodal.get("vision_encoder_args") or vision
        if multimodal.get("whisper_model_args"):
            fix = Fix.advice("use the config.json of the model beside it")
            raise origin.problem(("multimodal", "whisper_model_args"), "audio is not read from params.json", fix)
    if not isinstance(vision, Mapping) or not vision:
        return keys
    text = keys | {"model_type": "deepseek_v3" if "kv_lora_rank" in keys else "mistral"}
    tower = {"model_type": "pixtral", **vision}
    wrapper = {"architectures": ["Mistral3ForConditionalGeneration"], "text_config": text, "vision_config": tower}
    found = keys.get("quantization_config")
    return wrapper | ({"quantization_config": found} if found else {})


def _convert_windows(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return windows, which are a pattern that the layers repeat, or one for all layers."""
    windows, layers = keys.get("sliding_window"), keys.get("num_hidden_layers")
    if not windows or not isinstance(layers, int):
        return {}
    if isinstance(windows, list):
        kinds = ["full_attention" if size is None else "sliding_attention" for size in windows]
        return {
            "layer_types": kinds * (layers // len(windows)),
            "sliding_window": next(filter(None, windows), None),
        }
    return {"layer_types": ["sliding_attention"] * layers}


def _convert_experts(keys: Mapping[str, Any]) -> dict[str, Any]:
    experts = keys.get("moe")
    if not isinstance(experts, Mapping) or not experts:
        return {"architectures": ["MistralForCausalLM"], "model_type": "mistral"}
    renamed = {new: experts[old] for old, new in _EXPERT_KEYS.items() if old in experts}
    if experts.get("num_shared_experts"):
        return renamed | {"architectures": ["MistralLarge3ForCausalLM"], "model_type": "deepseek_v3"}
    routed = {"num_local_experts": renamed.get("n_routed_experts")}
    return renamed | routed | {"architectures": ["MixtralForCausalLM"], "model_type": "mixtral"}


def _convert_positions(keys: Mapping[str, Any]) -> dict[str, Any]:
    yarn = keys.get("yarn")
    if not isinstance(yarn, Mapping) or not yarn:
        return {}
    kept = {key: yarn[key] for key in ("factor", "original_max_position_embeddings") if key in yarn}
    return {"rope_parameters": {"rope_type": "yarn", **kept}}


def _convert_weights(keys: Mapping[str, Any], origin: Origin) -> dict[str, Any]:
    entry = keys.get("quantization")
    if not isinstance(entry, Mapping) or not entry:
        return {}
    if entry.get("qformat_weight") == "fp8_e4m3":
        return {"quantization_config": {"quant_method": "fp8"}}
    if str(entry.get("quant_method", "")).lower().replace("_", "-") == "compressed-tensors":
        return {"quantization_config": {**entry, "quant_method": "compressed-tensors"}}
    what = shown(entry.get("qformat_weight") or entry.get("quant_method"))
    known = Fix.advice("vLLM reads the formats fp8_e4m3 and compressed-tensors there")
    raise origin.problem(("quantization",), f"has the format {what}, which vLLM does not read", known)
