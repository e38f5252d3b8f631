"""Read the config.json of encoders (BERT and similar models) and encoder-decoders (Whisper)."""

from collections.abc import Callable

from rayhelm.facts._decoders import Record, decoder, dtype
from rayhelm.facts._keys import Config

__all__ = ["READERS"]


def _read_bert(config: Config) -> Record:
    record = decoder(config)
    record["attention"] |= {"qkv_bias": True, "output_bias": True}
    return record | {
        "tasks": ["embed"],
        "gated": False,
        "mlp_bias": True,
        "positions": record["max_context"],
        "token_types": config.count("type_vocab_size", 2, least=0),
        "causal": False,
        "output": "pooler",
        "norms": {"bias": True, "embedding": True, "final": False},
    }


def _read_xlm_roberta(config: Config) -> Record:
    """Read RoBERTa. Positions start after the id of the padding token, so the context is shorter by that id + 1."""
    record = _read_bert(config)
    return record | {"max_context": record["positions"] - config.count("pad_token_id", 1, least=0) - 1}


def _read_modern_bert(config: Config) -> Record:
    """Read ModernBERT. Its first layer has no norm before the attention, and the last norm is counted for it."""
    record = decoder(config)
    # Encoders keep no cache, so their local attention does not matter.
    attention = {key: value for key, value in record["attention"].items() if "window" not in key}
    return record | {
        "tasks": ["embed"],
        "attention": attention,
        "causal": False,
        "output": "none",
        "norms": {"embedding": True, "final": False},
    }


def _read_rotary_bert(config: Config) -> Record:
    """Read BERT with rotary positions and a gated MLP (Nomic, GTE, Snowflake)."""
    record = decoder(config)
    record["attention"] |= {"qkv_bias": config.flag("qkv_bias", True), "output_bias": config.flag("output_bias", True)}
    return record | {
        "tasks": ["embed"],
        "token_types": config.count("type_vocab_size", 0, least=0),
        "causal": False,
        "output": "none",
        "norms": {"bias": True, "embedding": True, "final": False},
    }


def _read_whisper(config: Config) -> Record:
    hidden = config.count("d_model")
    heads = config.count("decoder_attention_heads", most=hidden)
    return {
        "tasks": ["transcribe"],
        "layers": config.count("decoder_layers"),
        "hidden": hidden,
        "intermediate": config.count("decoder_ffn_dim"),
        "gated": False,
        "mlp_bias": True,
        "vocab": config.count("vocab_size"),
        "tied_embeddings": True,
        "positions": config.count("max_target_positions"),
        "max_context": config.count("max_target_positions"),
        "dtype": dtype(config),
        "attention": {"heads": heads, "kv_heads": heads, "head_dim": hidden // heads}
        | {"qkv_bias": True, "key_bias": False, "output_bias": True},
        "norms": {"per_layer": 3, "bias": True},
        "encoder": {
            "kind": "audio",
            "layers": config.count("encoder_layers"),
            "hidden": hidden,
            "heads": config.count("encoder_attention_heads"),
            "intermediate": config.count("encoder_ffn_dim"),
            "positions": config.count("max_source_positions"),
            "key_bias": False,
            "mel_bins": config.count("num_mel_bins"),
            "cross_attention": True,
        },
    }


READERS: dict[str, Callable[[Config], Record]] = {
    "bert": _read_bert,
    "modern_bert": _read_modern_bert,
    "rotary_bert": _read_rotary_bert,
    "whisper": _read_whisper,
    "xlm_roberta": _read_xlm_roberta,
}
