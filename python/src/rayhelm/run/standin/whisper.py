"""Files of the tiny Whisper: its audio front end, and a vocabulary of bytes with Whisper's control tokens."""

from collections.abc import Mapping
from typing import Any

__all__ = ["CONFIG", "SPECIAL", "build_front_end", "build_tokenizer_config"]

LANGUAGES = [
    "af", "ar", "hy", "az", "be", "bs", "bg", "ca", "zh", "hr", "cs", "da", "nl", "en", "et", "fi", "fr", "gl", "de",
    "el", "he", "hi", "hu", "is", "id", "it", "ja", "kn", "kk", "ko", "lv", "lt", "mk", "ms", "mr", "mi", "ne", "no",
    "fa", "pl", "pt", "ro", "ru", "sr", "sk", "sl", "es", "sw", "sv", "tl", "ta", "th", "tr", "uk", "ur", "vi", "cy",
]  # fmt: skip
"""Every language that vLLM may detect or be asked for (`ISO639_1_SUPPORTED_LANGS`)."""
_END, _START = "<|endoftext|>", "<|startoftranscript|>"
SPECIAL = (
    _END,
    _START,
    *(f"<|{language}|>" for language in LANGUAGES),
    *("<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"),
)
POSITIONS = 448
"""Longest transcript, in tokens, as of all Whisper models."""
_MELS = 80
_FRAMES_PER_SECOND = 100
_SECONDS = 30
"""Length of the parts into which vLLM cuts audio."""

CONFIG: Mapping[str, Any] = {
    "model_type": "whisper",
    "is_encoder_decoder": True,
    "vocab_size": 384,
    "d_model": 128,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 256,
    "decoder_ffn_dim": 256,
    "num_mel_bins": _MELS,
    "max_source_positions": _SECONDS * _FRAMES_PER_SECOND // 2,
    "max_target_positions": POSITIONS,
    "activation_function": "gelu",
    "bos_token_id": SPECIAL.index(_END),
    "eos_token_id": SPECIAL.index(_END),
    "pad_token_id": SPECIAL.index(_END),
    "decoder_start_token_id": SPECIAL.index(_START),
}


def build_front_end() -> dict[str, Any]:
    """Return `preprocessor_config.json`: 16 kHz audio in parts of 30 s becomes 80 mel bands, 100 times a second."""
    rate = 16000
    return {
        "feature_extractor_type": "WhisperFeatureExtractor",
        "processor_class": "WhisperProcessor",
        "feature_size": _MELS,
        "sampling_rate": rate,
        "hop_length": rate // _FRAMES_PER_SECOND,
        "chunk_length": _SECONDS,
        "n_fft": 400,
        "padding_value": 0.0,
        "padding_side": "right",
        "return_attention_mask": False,
    }


def build_tokenizer_config() -> dict[str, Any]:
    """Return `tokenizer_config.json`."""
    tokens = dict.fromkeys(("bos_token", "eos_token", "unk_token", "pad_token"), _END)
    return {"tokenizer_class": "WhisperTokenizer", "model_max_length": POSITIONS, **tokens}
