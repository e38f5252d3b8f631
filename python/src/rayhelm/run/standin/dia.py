"""Files of the tiny Dia and of its codec. Its text is bytes, so it has no vocabulary. Its weights are random."""

from collections.abc import Mapping
from math import prod
from typing import Any

__all__ = ["CODEC", "CONFIG", "build_codec", "build_front_end"]

CODEC = "codec"
"""Folder of the codec below the one of the model."""
_RATE = 16000
_CHANNELS, _CODES = 9, 1024
"""Codebooks of the codec, and entries of each. The processor of transformers counts on these."""
_RATIOS = [2, 4, 8, 8]
_LAYER: Mapping[str, Any] = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 32}

CONFIG: Mapping[str, Any] = {
    "model_type": "dia",
    "is_encoder_decoder": True,
    "delay_pattern": [0, 8, 9, 10, 11, 12, 13, 14, 15],
    "encoder_config": {"model_type": "dia_encoder", "hidden_size": 64, "intermediate_size": 128, **_LAYER},
    "decoder_config": {
        "model_type": "dia_decoder",
        "hidden_size": 64,
        "intermediate_size": 128,
        **_LAYER,
        "cross_num_attention_heads": 2,
        "cross_num_key_value_heads": 2,
        "cross_head_dim": 32,
        "cross_hidden_size": 64,
        "num_channels": _CHANNELS,
        "vocab_size": _CODES + 4,
    },
}


def build_codec() -> dict[str, Any]:
    """Return `config.json` of the codec: 512 samples become one code of each codebook."""
    return {
        "model_type": "dac",
        "architectures": ["DacModel"],
        "encoder_hidden_size": 8,
        "decoder_hidden_size": 64,
        "downsampling_ratios": _RATIOS,
        "n_codebooks": _CHANNELS,
        "codebook_size": _CODES,
        "sampling_rate": _RATE,
    }


def build_front_end() -> dict[str, Any]:
    """Return `preprocessor_config.json`."""
    return {"feature_extractor_type": "DiaFeatureExtractor", "sampling_rate": _RATE, "hop_length": prod(_RATIOS)}
