"""Files of the tiny SpeechT5: its configuration, its vocoder, and a vocabulary of letters. Its weights are random."""

import struct
from collections.abc import Mapping
from typing import Any

__all__ = ["CONFIG", "VOCODER", "build_vocabulary", "build_vocoder"]

VOCODER = "vocoder"
"""Folder of the vocoder below the one of the model."""
_MELS = 80
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ,.;:!?'-()\""
_UNKNOWN, _CONTROL, _NORMAL = 2, 3, 1
"""Types of a piece in sentencepiece's `ModelProto`."""
_PIECES = (
    *((text, _CONTROL) for text in ("<s>", "<pad>", "</s>")),
    ("<unk>", _UNKNOWN),
    # sentencepiece writes a space as U+2581.
    *((letter.replace(" ", "\u2581"), _NORMAL) for letter in _LETTERS),
)

CONFIG: Mapping[str, Any] = {
    "model_type": "speecht5",
    "is_encoder_decoder": True,
    "vocab_size": len(_PIECES),
    "hidden_size": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "num_mel_bins": _MELS,
    "reduction_factor": 2,
    "speaker_embedding_dim": 512,
    "speech_decoder_prenet_units": 32,
    "speech_decoder_postnet_units": 32,
    "speech_decoder_postnet_layers": 2,
    "max_text_positions": 600,
    "bos_token_id": 0,
    "pad_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}


def build_vocoder() -> dict[str, Any]:
    """Return `config.json` of the vocoder: one frame becomes 256 samples, as in the real one."""
    return {
        "model_type": "speecht5_hifigan",
        "architectures": ["SpeechT5HifiGan"],
        "model_in_dim": _MELS,
        "sampling_rate": 16000,
        "upsample_initial_channel": 32,
        "upsample_rates": [4, 4, 4, 4],
        "upsample_kernel_sizes": [8, 8, 8, 8],
        "resblock_kernel_sizes": [3],
        "resblock_dilation_sizes": [[1, 3, 5]],
        "normalize_before": False,
        # Weights of the usual size would give samples that are all zero.
        "initializer_range": 0.3,
    }


def build_vocabulary() -> bytes:
    """Return `spm_char.model`, a vocabulary of sentencepiece with one piece per letter: a protobuf `ModelProto`."""
    return b"".join(_write_field(1, _write_piece(text, kind)) for text, kind in _PIECES)


def _write_piece(text: str, kind: int) -> bytes:
    """Return a `SentencePiece`: the text, its score as a 32-bit float, and its type as a number."""
    return _write_field(1, text.encode()) + b"\x15" + struct.pack("<f", -1.0) + bytes((0x18, kind))


def _write_field(number: int, content: bytes) -> bytes:
    """Return a protobuf field with its length; all lengths are below 128, so they are one byte."""
    return bytes((number << 3 | 2, len(content))) + content
