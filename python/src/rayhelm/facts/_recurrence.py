"""Read layers with a recurrent state: Mamba, Mamba 2, gated delta rule, Kimi's delta attention, short convolutions."""

from collections.abc import Callable

from rayhelm.facts._decoders import OTHER_MODEL, Record
from rayhelm.facts._experts import read_experts
from rayhelm.facts._keys import Config

__all__ = ["RECURRENCES"]


def _read_mamba(config: Config, record: Record) -> None:
    """Read Mamba, alone (Falcon-Mamba) or between layers of attention (Jamba)."""
    hidden = record["hidden"]
    inner = config.count("mamba_inner_size", config.count("mamba_expand", 2) * hidden)
    period, layers = config.count_or_none("attn_layer_period"), range(record["layers"])
    offset = config.count("attn_layer_offset", 0, least=0)
    rank = "mamba_dt_rank"
    record["recurrence"] = {
        "kind": "mamba",
        "layers": tuple(layer for layer in layers if period is None or layer % period != offset),
        "head_dim": inner,
        "state": config.count("mamba_d_state", 16),
        "kernel": config.count("mamba_d_conv", 4),
        "rank": -(-hidden // 16) if config.is_text(rank) or not config.has(rank) else config.count(rank),
        "projection_bias": config.flag("mamba_proj_bias", False),
        "convolution_bias": config.flag("mamba_conv_bias", True),
        "norms": period is not None,
    }


def _read_mamba2(config: Config, record: Record) -> None:
    """Read Mamba 2, alone, between layers of attention, or beside attention in each layer (Falcon-H1)."""
    kinds = config.texts("layer_types") or config.texts("layers_block_type")
    layers = range(record["layers"])
    beside = config.flag("is_beside_attention", False)
    chosen = config.layers("attn_layer_indices")
    if kinds and not beside:
        recurrent = tuple(layer for layer, kind in enumerate(kinds[: record["layers"]]) if kind == "mamba")
    else:
        recurrent = tuple(layer for layer in layers if layer not in chosen)
    if recurrent:
        record["recurrence"] = _read_mamba2_shape(config, record) | {"layers": recurrent, "beside_attention": beside}


def _read_mamba2_shape(config: Config, record: Record) -> Record:
    inner = config.count("mamba_d_ssm", config.count("mamba_expand", 2) * record["hidden"])
    width = config.count("mamba_d_head", 64, most=inner) if not config.is_text("mamba_d_head") else 0
    heads = config.count("mamba_n_heads", inner // width if width else None)
    return {
        "kind": "mamba2",
        "heads": heads,
        "head_dim": width or max(1, inner // heads),
        "groups": config.count("mamba_n_groups", 1),
        "state": config.count("mamba_d_state", 128),
        "kernel": config.count("mamba_d_conv", 4),
        "projection_bias": config.flag("mamba_proj_bias", False),
        "convolution_bias": config.flag("mamba_conv_bias", True),
        "gated_norm": config.flag("mamba_rms_norm", True),
    }


def _read_nemotron(config: Config, record: Record) -> None:
    """Read Nemotron-H: a letter for each layer. M: Mamba 2, *: attention, E: experts, -: MLP."""
    key = "hybrid_override_pattern"
    names = {"mamba": "M", "attention": "*", "moe": "E", "mlp": "-"}
    written = config.texts("layers_block_type")
    pattern = "".join(names.get(kind, "?") for kind in written) if written else config.text(key)
    if set(pattern) - set("M*E-") or "M" not in pattern:
        raise config.problem(key, f"has letters besides M, *, E and -, or no M: {pattern[:60]!r}", OTHER_MODEL)
    found = {letter: tuple(i for i, kind in enumerate(pattern) if kind == letter) for letter in "M*E-"}
    record["layers"] = len(pattern)
    record["recurrence"] = _read_mamba2_shape(config, record) | {"layers": found["M"]}
    record["attention_free"] = (*found["-"], *found["E"])
    record["mlp_widths"] = tuple(record["intermediate"] * (letter == "-") for letter in pattern)
    if found["E"]:
        read_experts(config, record)
        record["experts"] |= {
            "layers": found["E"],
            "dense_layers": 0,
            "router_bias": True,
            "latent": config.count("moe_latent_size", 0, least=0),
        }


def _read_gated_delta(config: Config, record: Record) -> None:
    """Read the gated delta rule of Qwen3-Next and later models."""
    kinds, layers = config.texts("layer_types"), record["layers"]
    step = config.count("full_attention_interval", 4)
    recurrent = (
        tuple(layer for layer, kind in enumerate(kinds[:layers]) if kind == "linear_attention")
        if kinds
        else tuple(layer for layer in range(layers) if (layer + 1) % step)
    )
    if not recurrent:
        return
    record["recurrence"] = {
        "kind": "delta",
        "layers": recurrent,
        "heads": config.count("linear_num_value_heads"),
        "head_dim": config.count("linear_value_head_dim"),
        "groups": config.count("linear_num_key_heads"),
        "state": config.count("linear_key_head_dim"),
        "kernel": config.count("linear_conv_kernel_dim", 4),
    }


def _read_state_dtype(config: Config, record: Record) -> None:
    """Read the dtype of the state. vLLM does so for Nemotron-H and Qwen3.5 only, and takes the dtype of the model for
    other families (vllm 0.29 model_executor/models/config.py)."""
    if "recurrence" in record:
        record["recurrence"]["state_bits"] = 32 if config.text("mamba_ssm_dtype", "") == "float32" else 16


def _read_kimi_delta(config: Config, record: Record) -> None:
    """Read Kimi's delta attention. Its layers are counted from 1 in config.json."""
    part = config.part("linear_attn_config")
    layers = tuple(layer - 1 for layer in part.layers("kda_layers") if 0 < layer <= record["layers"])
    if not layers:
        raise part.problem("kda_layers", "is missing or empty", OTHER_MODEL)
    heads = part.count("num_heads")
    record["recurrence"] = {
        "kind": "kimi_delta",
        "layers": layers,
        "heads": heads,
        "head_dim": part.count("head_dim"),
        "groups": heads,
        "state": part.count("head_dim"),
        "kernel": part.count("short_conv_kernel_size", 4),
        "state_bits": 32,
    }


def _read_short_convolution(config: Config, record: Record) -> None:
    """Read LFM2: short convolutions between layers of attention. The width of its MLP follows from three keys."""
    kinds, layers = config.texts("layer_types"), record["layers"]
    chosen = config.layers("full_attn_idxs")
    recurrent = tuple(
        layer for layer in range(layers) if (kinds[layer : layer + 1] == ["conv"] if kinds else layer not in chosen)
    )
    if not recurrent:
        raise config.problem("layer_types", "names no `conv` layer", OTHER_MODEL)
    record["recurrence"] = {
        "kind": "convolution",
        "layers": recurrent,
        "head_dim": record["hidden"],
        "kernel": config.count("conv_L_cache", 3, least=2),
        "projection_bias": config.flag("conv_bias", False),
        "convolution_bias": config.flag("conv_bias", False),
    }
    if config.flag("block_auto_adjust_ff_dim", False):
        multiple = config.count("block_multiple_of", 256)
        record["intermediate"] = -(-int(2 * record["intermediate"] / 3) // multiple) * multiple


RECURRENCES: dict[str, tuple[Callable[[Config, Record], None], frozenset[str]]] = {
    "gated_delta": (_read_gated_delta, frozenset({"linear_attention"})),
    "kimi_delta": (_read_kimi_delta, frozenset({"linear_attention"})),
    "mamba": (_read_mamba, frozenset({"mamba"})),
    "mamba2": (_read_mamba2, frozenset({"mamba"})),
    "nemotron_h": (_read_nemotron, frozenset()),
    "state_dtype": (_read_state_dtype, frozenset()),
    "short_convolution": (_read_short_convolution, frozenset({"conv"})),
}
"""By name: the reader, and the kinds in `layer_types` that it knows."""
