"""Read the config.json of decoders: dense, with experts, with windows, with latent attention."""

from typing import Any

from rayhelm.catalog._keys import Config
from rayhelm.catalog._origin import shown
from rayhelm.errors import Fix

__all__ = ["decoder", "deepseek", "dtype", "gemma2", "gemma3_text", "gpt_oss", "mixtral", "qwen2", "qwen3", "qwen3_moe"]

Record = dict[str, Any]


def decoder(config: Config) -> Record:
    """Read a decoder: Llama, and models that differ from it by flags (Mistral, Phi-3, Phi-4). The other readers of
    this module extend this one."""
    hidden = config.count("hidden_size")
    heads = config.count("num_attention_heads", most=hidden)
    bias = config.flag("attention_bias", False)
    return {
        "layers": config.count("num_hidden_layers"),
        "hidden": hidden,
        "intermediate": config.count("intermediate_size"),
        "vocab": config.count("vocab_size"),
        "max_context": config.count("max_position_embeddings"),
        "dtype": dtype(config),
        "tied_embeddings": config.flag("tie_word_embeddings", False),
        "mlp_bias": config.flag("mlp_bias", False),
        "attention": {
            "heads": heads,
            "kv_heads": config.count("num_key_value_heads", heads),
            "head_dim": config.count("head_dim", hidden // heads),
            "qkv_bias": bias,
            "output_bias": bias,
            **_read_windows(config),
        },
    }


def qwen2(config: Config) -> Record:
    record = decoder(config)
    record["attention"] |= {"qkv_bias": True, "output_bias": False}
    return record


def qwen3(config: Config) -> Record:
    record = decoder(config)
    record["attention"]["qk_norm"] = True
    return record


def qwen3_moe(config: Config) -> Record:
    if config.count("decoder_sparse_step", 1) != 1:
        raise config.problem("decoder_sparse_step", _MIXED, _OTHER_MODEL)
    if config.layers("mlp_only_layers"):
        raise config.problem("mlp_only_layers", _MIXED, _OTHER_MODEL)
    return qwen3(config) | {"experts": _read_experts(config, "num_experts", "moe_intermediate_size")}


def mixtral(config: Config) -> Record:
    return decoder(config) | {"experts": _read_experts(config, "num_local_experts", "intermediate_size")}


def gpt_oss(config: Config) -> Record:
    record = mixtral(config)
    record["attention"]["sinks"] = True
    record["experts"] |= {"router_bias": True, "expert_bias": True}
    return record


def deepseek(config: Config) -> Record:
    """Read DeepSeek V2, V3, R1 and Kimi K2, without the layers of multi-token prediction: vLLM loads those only for
    speculative decoding."""
    wide = config.count("moe_intermediate_size")
    record = decoder(config)
    ranks = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    mla = {key: config.count(key) for key in ranks}
    record["attention"] |= {
        "mla": mla | {"q_lora_rank": config.count_or_none("q_lora_rank")},
        "head_dim": mla["qk_nope_head_dim"] + mla["qk_rope_head_dim"],
    }
    record["experts"] = _read_experts(config, "n_routed_experts", "moe_intermediate_size") | {
        "shared_intermediate": wide * config.count("n_shared_experts", 0, least=0),
        "dense_layers": config.count("first_k_dense_replace", 0, least=0),
        "router_bias": config.text("topk_method", "") == "noaux_tc",
    }
    return record


def gemma2(config: Config) -> Record:
    record = decoder(config.with_defaults({"tie_word_embeddings": True}))
    return record | {"norms": {"per_layer": 4}}


def gemma3_text(config: Config) -> Record:
    record = gemma2(config)
    record["attention"]["qk_norm"] = True
    return record


def _read_experts(config: Config, count: str, width: str) -> Record:
    """Read the experts. `count` and `width` are the family's keys for the number of experts and the width of one."""
    experts = config.count(count, least=2)
    active = config.count("num_experts_per_tok", most=experts)
    return {"count": experts, "active": active, "intermediate": config.count(width)}


def _read_windows(config: Config) -> Record:
    window = config.count_or_none("sliding_window")
    windowed = _count_windowed_layers(config, window)
    return {"sliding_window": window, "windowed_layers": windowed} if windowed else {}


def _count_windowed_layers(config: Config, window: int | None) -> int:
    """Return the number of layers with a sliding window. Families use different keys for it."""
    layers = config.count("num_hidden_layers")
    if kinds := config.texts("layer_types"):
        if unknown := set(kinds) - {"full_attention", "sliding_attention"}:
            raise config.problem("layer_types", f"{', '.join(sorted(unknown))} is not supported", _OTHER_MODEL)
        return kinds.count("sliding_attention")
    if window is None or window >= config.count("max_position_embeddings"):
        return 0
    if config.has("use_sliding_window"):
        wanted = config.flag("use_sliding_window", False)
        return max(0, layers - config.count("max_window_layers", least=0)) if wanted else 0
    if usual := _WINDOW_PATTERN.get(config.text("model_type", "")):
        return layers - layers // config.count("sliding_window_pattern", usual)
    return layers


def dtype(config: Config) -> str:
    """Return the dtype; bfloat16 if the file has none (gpt-oss). In GPU memory a weight has 16 bits in any case."""
    key = "torch_dtype" if config.has("torch_dtype") else "dtype"
    name = config.text(key, "bfloat16").removeprefix("torch.")
    if name not in _DTYPES:
        raise config.problem(key, f"is {shown(name)}, none of {', '.join(_DTYPES)}", Fix(value="bfloat16"))
    return name


_DTYPES = ("bfloat16", "float16", "float32")

_MIXED = "dense layers between layers of experts are not supported"

_OTHER_MODEL = Fix.advice("use another model: rayhelm cannot compute the memory of this one")

_WINDOW_PATTERN = {"gemma2": 2, "gemma3_text": 6, "gpt_oss": 2}
"""Every n-th layer has full attention, for families whose config.json does not contain the number."""
