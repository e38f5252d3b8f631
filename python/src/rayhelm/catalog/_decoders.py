"""Reads the config.json of decoders: dense, with experts, with windows, with latent attention."""

from typing import Any

from rayhelm.catalog._keys import Config

__all__ = ["decoder", "deepseek", "dtype", "gemma2", "gemma3_text", "gpt_oss", "mixtral", "qwen2", "qwen3", "qwen3_moe"]

Record = dict[str, Any]


def decoder(config: Config) -> Record:
    """Llama and all that differ from it by a flag: Mistral, Phi-3 and Phi-4; the ground of every decoder here."""
    heads, hidden = config.count("num_attention_heads"), config.count("hidden_size")
    bias = bool(config.get("attention_bias", False))
    return {
        "layers": config.count("num_hidden_layers"),
        "hidden": hidden,
        "intermediate": config.count("intermediate_size"),
        "vocab": config.count("vocab_size"),
        "max_context": config.count("max_position_embeddings"),
        "dtype": dtype(config),
        "tied_embeddings": bool(config.get("tie_word_embeddings", False)),
        "mlp_bias": bool(config.get("mlp_bias", False)),
        "attention": {
            "heads": heads,
            "kv_heads": config.count("num_key_value_heads", heads),
            "head_dim": config.count("head_dim", hidden // heads),
            "qkv_bias": bias,
            "output_bias": bias,
            **_windows(config),
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
    if config.get("decoder_sparse_step", 1) != 1 or config.get("mlp_only_layers", []):
        raise config.problem("dense layers between layers of experts are not supported")
    return qwen3(config) | {"experts": _experts(config, config.count("num_experts"))}


def mixtral(config: Config) -> Record:
    experts = _experts(config, config.count("num_local_experts")) | {"intermediate": config.count("intermediate_size")}
    return decoder(config) | {"experts": experts}


def gpt_oss(config: Config) -> Record:
    record = mixtral(config)
    record["attention"]["sinks"] = True
    record["experts"] |= {"router_bias": True, "expert_bias": True}
    return record


def deepseek(config: Config) -> Record:
    """V2, V3, R1, Kimi K2. The layers of multi-token prediction are left out: vLLM loads them only to speculate."""
    wide = config.count("moe_intermediate_size")
    record = decoder(config)
    ranks = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    mla = {key: config.count(key) for key in ranks} | {"q_lora_rank": config.get("q_lora_rank")}
    record["attention"] |= {"mla": mla, "head_dim": mla["qk_nope_head_dim"] + mla["qk_rope_head_dim"]}
    record["experts"] = _experts(config, config.count("n_routed_experts")) | {
        "shared_intermediate": wide * config.get("n_shared_experts", 0),
        "dense_layers": config.get("first_k_dense_replace", 0),
        "router_bias": config.get("topk_method") == "noaux_tc",
    }
    return record


def gemma2(config: Config) -> Record:
    record = decoder(Config({"tie_word_embeddings": True, **config.keys}, config.where))
    return record | {"norms": {"per_layer": 4}}


def gemma3_text(config: Config) -> Record:
    record = gemma2(config)
    record["attention"]["qk_norm"] = True
    return record


def _experts(config: Config, count: int) -> Record:
    active = config.count("num_experts_per_tok")
    return {"count": count, "active": active, "intermediate": config.get("moe_intermediate_size")}


def _windows(config: Config) -> Record:
    """Which layers see only a window, by whatever key the family says it with."""
    window, layers = config.get("sliding_window"), config.count("num_hidden_layers")
    if kinds := config.get("layer_types"):
        if unknown := set(kinds) - {"full_attention", "sliding_attention"}:
            raise config.problem(f"layers of kind {', '.join(sorted(unknown))} are not supported")
        windowed = kinds.count("sliding_attention")
    elif (
        window is None
        or window >= config.count("max_position_embeddings")
        or not config.get("use_sliding_window", True)
    ):
        windowed = 0
    elif config.get("use_sliding_window"):
        windowed = max(0, layers - config.count("max_window_layers"))
    elif config.get("model_type") in _WINDOW_PATTERN:
        every = config.get("sliding_window_pattern", _WINDOW_PATTERN[config.get("model_type")])
        windowed = layers - layers // every
    else:
        windowed = layers
    return {"sliding_window": window, "windowed_layers": windowed} if windowed else {}


def dtype(config: Config) -> str:
    """Left out by some publishers (gpt-oss); on the card it is 16 bits either way."""
    name = str(config.get("torch_dtype", config.get("dtype", "bfloat16")))
    return name.removeprefix("torch.")


_WINDOW_PATTERN = {"gemma2": 2, "gemma3_text": 6, "gpt_oss": 2}
"""Every n-th layer sees everything, where a family's config.json leaves that to its code."""
