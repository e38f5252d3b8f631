"""Files of the tiny Idefics3, which sees images: a vision tower for 56 x 56 pixels, and its image processor.

vLLM's Idefics3 accepts the image processor of Pillow. Its Gemma 3, Mistral 3, LLaVA and Qwen VL import torchvision,
whose builds have to match torch's.
"""

from collections.abc import Mapping
from typing import Any

__all__ = ["IMAGE_TOKENS", "SPECIAL", "VISION", "build_processor"]

_IMAGE = "<image>"
SPECIAL = (
    *("<s>", "</s>", "<pad>", "<unk>", _IMAGE, "<fake_token_around_image>", "<end_of_utterance>", "<global-img>"),
    *(f"<row_{row}_col_{column}>" for row in (1, 2) for column in (1, 2)),
)
_PIXELS, _PATCH, _SCALE = 56, 14, 2
_TILES = 2
"""Tiles along the longer edge. Without tiles, transformers counts no part of an image at all."""
IMAGE_TOKENS = (_PIXELS // _PATCH // _SCALE) ** 2
"""Tokens of a tile."""

VISION: Mapping[str, Any] = {
    "model_type": "idefics3",
    "image_token_id": SPECIAL.index(_IMAGE),
    "scale_factor": _SCALE,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "vision_config": {
        "model_type": "idefics3_vision",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": _PIXELS,
        "patch_size": _PATCH,
    },
}


def build_processor() -> dict[str, dict[str, Any]]:
    """Return the files of the processor of images and text."""
    image = {
        "image_processor_type": "Idefics3ImageProcessor",
        "size": {"longest_edge": _TILES * _PIXELS},
        "max_image_size": {"longest_edge": _PIXELS},
        "do_image_splitting": True,
    }
    return {
        "preprocessor_config.json": {**image, "processor_class": "Idefics3Processor"},
        "processor_config.json": {"processor_class": "Idefics3Processor", "image_seq_len": IMAGE_TOKENS},
    }
