"""Read the general keys of a decoder's config.json: sizes, attention, sliding windows."""

from collections.abc import Set
from typing import Any

from rayhelm.errors import Fix
from rayhelm.facts._keys import Config
from rayhelm.facts._origin import shown
from rayhelm.facts._rope import read_contexts

__all__ = ["OTHER_MODEL", "Record", "add_extra", "decoder", "dtype"]

Record = dict[str, Any]


def decoder(config: Config, other_layers: Set[str] = frozenset()) -> Record:
    """Read a decoder: Llama, and models that differ from it by names of keys, flags and parts. `other_layers`: kinds of
    layers that a part reader of the architecture knows."""
    hidden = config.count("hidden_size")
    heads = config.count("num_attention_heads", most=hidden)
    bias = config.flag("attention_bias", False)
    return {
        "layers": _count_layers(config),
        "hidden": hidden,
        "intermediate": config.count("intermediate_size", 4 * hidden, least=0)
        if config.flag("is_four_times_wide", False)
        else config.count("intermediate_size", least=0),
        "vocab": config.count("vocab_size"),
        **read_contexts(config),
        "dtype": dtype(config),
        "tied_embeddings": config.flag("tie_word_embeddings", False),
        "mlp_bias": config.flag("mlp_bias", False),
        "attention": {
            "heads": heads,
            "kv_heads": config.count("num_key_value_heads", heads),
            "head_dim": config.count("head_dim", hidden // heads),
            "qkv_bias": bias,
            "output_bias": bias,
            **_read_windows(config, other_layers),
        },
    }


def _count_layers(config: Config) -> int:
    """Return the number of layers; where the key is absent, that of the list of their kinds (Nemotron 3 Ultra)."""
    return config.count("num_hidden_layers", len(config.texts("layers_block_type")) or None)


def add_extra(record: Record, parameters: int, source: str) -> None:
    """Add parameters that no field of the record counts. The sum of all is one field with all sources."""
    if not parameters:
        return
    record["extra_parameters"] = record.get("extra_parameters", 0) + parameters
    record["extra_source"] = "; ".join(part for part in (record.get("extra_source", ""), source) if part)


def _read_windows(config: Config, other_layers: Set[str]) -> Record:
    window = config.count_or_none("sliding_window")
    windowed = _count_windowed_layers(config, window, other_layers)
    return {"sliding_window": window, "windowed_layers": windowed} if windowed else {}


def _count_windowed_layers(config: Config, window: int | None, other_layers: Set[str]) -> int:
    """Return the number of layers with a sliding window. Families use different keys for it."""
    layers = _count_layers(config)
    if kinds := config.texts("layer_types"):
        if unknown := set(kinds) - _FULL - {"sliding_attention"} - other_layers:
            named = ", ".join(shown(kind)[1:-1] for kind in sorted(unknown)[:3])
            raise config.problem("layer_types", f"{named} is not supported", OTHER_MODEL)
        return kinds.count("sliding_attention")
    if pattern := config.flags("hybrid_layer_pattern"):
        return sum(pattern)
    if window is None or window >= config.count("max_position_embeddings"):
        return 0
    if config.has("use_sliding_window"):
        wanted = config.flag("use_sliding_window", False)
        return max(0, layers - config.count("max_window_layers", least=0)) if wanted else 0
    if usual := _WINDOW_PATTERN.get(config.text("model_type", "")):
        every = usual if config.is_text("sliding_window_pattern") else config.count("sliding_window_pattern", usual)
        return layers - layers // every
    return layers


def dtype(config: Config) -> str:
    """Return the dtype; bfloat16 if the file has none (gpt-oss). In GPU memory a weight has 16 bits in any case."""
    key = "torch_dtype" if config.has("torch_dtype") else "dtype"
    name = config.text(key, "bfloat16").removeprefix("torch.")
    if name not in _DTYPES:
        raise config.problem(key, f"is {shown(name)}, none of {', '.join(_DTYPES)}", Fix(value="bfloat16"))
    return name


_DTYPES = ("bfloat16", "float16", "float32")

_FULL = frozenset({"full_attention", "attention", "chunked_attention"})
"""Kinds of layers whose cache grows with each token. vLLM does so for chunked attention (Llama 4) by default."""

OTHER_MODEL = Fix.advice(
    "use another model: rayhelm cannot compute the memory of this one. Or give its figures as `memory` in the fleet"
)

_WINDOW_PATTERN = {"gemma2": 2, "gemma3_text": 6, "gpt_oss": 2, "cohere2": 4, "exaone4": 4}
"""Every n-th layer has full attention, for families whose config.json does not contain the number."""
