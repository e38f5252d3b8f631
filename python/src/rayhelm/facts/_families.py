"""Read what is peculiar to one family of decoders: flags that decide shapes, layers that differ from each other."""

from collections.abc import Callable

from rayhelm.facts._decoders import OTHER_MODEL, Record, add_extra
from rayhelm.facts._experts import read_experts
from rayhelm.facts._keys import Config

__all__ = ["FAMILIES"]


def _read_falcon(config: Config, record: Record) -> None:
    """Read Falcon's flags: one key head, or groups; one or two norms before the parallel attention and MLP."""
    new = config.flag("new_decoder_architecture", False)
    one = config.flag("multi_query", True) and not new
    attention = record["attention"]
    attention["kv_heads"] = 1 if one else config.count("num_kv_heads", attention["heads"])
    norms = config.count("num_ln_in_parallel_attn", 2 if new else 1)
    record["norms"] = {"bias": True, "per_layer": norms if config.flag("parallel_attn", True) else 2}
    bias = config.flag("bias", False)
    record["mlp_bias"] = bias
    attention |= {"qkv_bias": bias, "output_bias": bias}


def _read_gemma4(config: Config, record: Record) -> None:
    """Read Gemma 4: wider heads in layers with full attention, shared caches, embeddings of each layer."""
    hidden, layers, attention = record["hidden"], record["layers"], record["attention"]
    shares = config.flag("attention_k_eq_v", False)
    attention["full"] = {
        "kv_heads": config.count("num_global_key_value_heads", attention["kv_heads"])
        if shares
        else attention["kv_heads"],
        "head_dim": config.count("global_head_dim", 512),
        "values_are_keys": shares,
    }
    record["norms"] = {"per_layer": 4}
    shared = config.count("num_kv_shared_layers", 0, least=0, most=layers)
    attention["cache_shared_layers"] = shared
    if config.flag("enable_moe_block", False):
        read_experts(config, record)
        record["experts"]["beside_dense"] = True
        record["norms"]["per_layer"] += 3
        # A scale of each channel before the router, one of each expert after it.
        add_extra(record, layers * (hidden + record["experts"]["count"]), "router scales of Gemma 4")
    narrow = config.count("hidden_size_per_layer_input", 0, least=0)
    if narrow:
        rows = config.count("vocab_size_per_layer_input", record["vocab"])
        per_layer = 2 * hidden * narrow + hidden
        table = layers * narrow * (rows + hidden) + narrow
        add_extra(record, layers * per_layer + table, "embeddings of each layer, Gemma 3n and 4")
    if config.flag("use_double_wide_mlp", False) and shared:
        wide = record["intermediate"]
        record["mlp_widths"] = tuple(wide * (2 if layer >= layers - shared else 1) for layer in range(layers))


def _read_mimo(config: Config, record: Record) -> None:
    """Read MiMo V2: fewer key heads in layers with full attention, values narrower than keys, sinks in windows."""
    attention = record["attention"]
    heads = config.count("swa_num_key_value_heads", attention["kv_heads"])
    attention |= {
        "full": {"kv_heads": attention["kv_heads"], "head_dim": attention["head_dim"]},
        "kv_heads": heads,
        "value_dim": config.count("v_head_dim", attention["head_dim"]),
    }


def _read_chatglm(config: Config, record: Record) -> None:
    """Read ChatGLM: groups of keys by a flag, a bias on queries, keys and values alone."""
    attention = record["attention"]
    if not config.flag("multi_query_attention", False):
        attention["kv_heads"] = attention["heads"]
    attention |= {"qkv_bias": config.flag("add_qkv_bias", False), "output_bias": False}


def _read_llama4(config: Config, record: Record) -> None:
    """Read Llama 4: chunked attention except in layers without rotary positions, every fourth one; experts in every
    n-th layer, each with a shared expert as wide as one expert."""
    layers, kinds, rotary = record["layers"], config.texts("layer_types"), config.flags("no_rope_layers")
    every = config.count("no_rope_layer_interval", 4)
    chunked = kinds.count("chunked_attention") if kinds else sum(rotary) if rotary else layers - layers // every
    record["attention"] |= {"chunk": config.count("attention_chunk_size", 8192), "chunked_layers": chunked}
    step = config.count("interleave_moe_layer_step", 1)
    read_experts(config, record)
    chosen = config.layers("moe_layers") or range(step - 1, record["layers"], step)
    width = record["experts"]["intermediate"]
    record["experts"] |= {"shared_intermediate": width, "layers": tuple(chosen), "dense_layers": 0}


def _read_granite_hybrid(config: Config, record: Record) -> None:
    """Read Granite 4: experts beside a shared MLP, or the shared MLP alone."""
    if config.count("num_experts", 0, least=0):
        read_experts(config, record)
    else:
        record["intermediate"] = config.count("shared_expert_intermediate_size")


def _read_seed_bias(config: Config, record: Record) -> None:
    record["attention"]["output_bias"] = config.flag("attention_out_bias", False)


def _read_stablelm(config: Config, record: Record) -> None:
    attention = record["attention"]
    attention |= {"qkv_bias": config.flag("use_qkv_bias", False), "output_bias": False}
    if config.flag("use_parallel_residual", False):
        record["norms"] = {"per_layer": 1}
    if config.flag("qk_layernorm", False):
        attention |= {"qk_norm": True, "qk_norm_all_heads": True}


def _read_cohere(config: Config, record: Record) -> None:
    has_norm = config.flag("use_qk_norm", False)
    record["attention"] |= {"qk_norm": has_norm, "qk_norm_all_heads": has_norm}


def _read_bailing(config: Config, record: Record) -> None:
    record["attention"] |= {
        "qkv_bias": config.flag("use_qkv_bias", False),
        "output_bias": config.flag("use_bias", False),
        "qk_norm": config.flag("use_qk_norm", False),
    }


def _read_dbrx(config: Config, record: Record) -> None:
    experts, attention = config.part("ffn_config"), config.part("attn_config")
    count = experts.count("moe_num_experts", least=2)
    record["attention"]["kv_heads"] = attention.count("kv_n_heads")
    record["experts"] = {
        "count": count,
        "active": experts.count("moe_top_k", most=count),
        "intermediate": experts.count("ffn_hidden_size"),
    }


def _read_falcon_h1(config: Config, record: Record) -> None:
    record["attention"] |= {"output_bias": record["attention"]["qkv_bias"]}


def _read_gte(config: Config, record: Record) -> None:
    add_extra(record, record["layers"] * record["hidden"], "bias of the second matrix of each MLP")


def _read_deci(config: Config, record: Record) -> None:
    """Read Nemotron-NAS: each layer has its own width, some have no attention."""
    blocks, hidden, layers = config.parts("block_configs"), record["hidden"], record["layers"]
    if len(blocks) != layers:
        raise config.problem("block_configs", f"has {len(blocks)} entries for {layers} layers", OTHER_MODEL)
    groups = {part.count_or_none("n_heads_in_group") for part in (block.part("attention") for block in blocks)} - {None}
    if len(groups) != 1:
        raise config.problem("block_configs", "has layers with different numbers of KV heads", OTHER_MODEL)
    heads = record["attention"]["heads"]
    record["attention"]["kv_heads"] = max(1, heads // (groups.pop() or 1))
    record["attention_free"] = tuple(
        layer for layer, block in enumerate(blocks) if not block.part("attention").has("n_heads_in_group")
    )
    record["mlp_widths"] = tuple(_read_deci_width(block.part("ffn"), hidden) for block in blocks)


def _read_deci_width(part: Config, hidden: int) -> int:
    """Return the width of an MLP: a factor of two thirds of four times the hidden size, up to a multiple of 256."""
    multiple = part.number("ffn_mult", 0.0)
    return -(-int(2 * multiple * hidden / 3) // 256) * 256


FAMILIES: dict[str, Callable[[Config, Record], None]] = {
    "bailing": _read_bailing,
    "chatglm": _read_chatglm,
    "dbrx": _read_dbrx,
    "deci": _read_deci,
    "falcon": _read_falcon,
    "falcon_h1": _read_falcon_h1,
    "gemma4": _read_gemma4,
    "granite_hybrid": _read_granite_hybrid,
    "gte": _read_gte,
    "llama4": _read_llama4,
    "mimo": _read_mimo,
    "seed_bias": _read_seed_bias,
    "stablelm": _read_stablelm,
    "use_qk_norm_of_each_head": _read_cohere,
}
