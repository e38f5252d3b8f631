"""Read the config.json of models with an encoder: BERT and similar models, Whisper, Gemma 3 with its vision tower."""

from collections.abc import Callable
from typing import Any

from rayhelm.catalog._decoders import decoder, dtype, gemma3_text
from rayhelm.catalog._keys import Config

__all__ = ["bert", "gemma3", "reranker", "whisper", "xlm_roberta"]

Record = dict[str, Any]


def gemma3(config: Config) -> Record:
    text, vision = config.part("text_config", _GEMMA3_TEXT), config.part("vision_config", _SIGLIP)
    hidden, width = text.count("hidden_size"), vision.count("hidden_size")
    image = vision.count("image_size")
    patch = vision.count("patch_size", most=image)
    return gemma3_text(text) | {
        "dtype": dtype(config),
        "encoder": {
            "kind": "vision",
            "layers": vision.count("num_hidden_layers"),
            "hidden": width,
            "heads": vision.count("num_attention_heads"),
            "intermediate": vision.count("intermediate_size"),
            "patch": patch,
            "positions": (image // patch) ** 2,
        },
        "extra_parameters": hidden * width + width,
        "extra_source": "projector from image to text and its norm: hidden x width + width",
    }


def bert(config: Config) -> Record:
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


def xlm_roberta(config: Config) -> Record:
    """Read XLM-RoBERTa. Positions start after the id of the padding token, so the context is shorter by that id + 1."""
    record = bert(config)
    return record | {"max_context": record["positions"] - config.count("pad_token_id", 1, least=0) - 1}


def reranker(read: Callable[[Config], Record]) -> Callable[[Config], Record]:
    return lambda config: read(config) | {"tasks": ["rerank"], "output": "classifier"}


def whisper(config: Config) -> Record:
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


_GEMMA3_TEXT = {
    "model_type": "gemma3_text",
    "vocab_size": 262208,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "max_position_embeddings": 131072,
}
"""Defaults of transformers' Gemma3TextConfig; Google's files have only the values that differ."""

_SIGLIP = {"num_hidden_layers": 27, "num_attention_heads": 16, "patch_size": 14}
"""Defaults of the SigLIP vision tower in Gemma 3."""
