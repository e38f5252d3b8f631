"""Write the files of a tiny model: config, byte-level tokenizer, chat template. The engine makes dummy weights."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rayhelm.run.standin import dia, idefics3, speecht5, whisper
from rayhelm.run.standin.adapters import write_adapters
from rayhelm.run.standin.families import POSITIONS, build_config

__all__ = ["write_checkpoint"]

SPECIAL = ("<s>", "</s>", "<pad>", "<unk>")
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def write_checkpoint(family: str, folder: Path) -> Path:
    """Write the tiny model of `family` below `folder`, only files that differ, and return its folder."""
    target = folder / family
    target.mkdir(parents=True, exist_ok=True)
    for name, content in _build_files(family).items():
        path = target / name
        data = content if isinstance(content, bytes) else json.dumps(content, indent=2).encode()
        if not path.is_file() or path.read_bytes() != data:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
    write_adapters(family, target)
    return target


def _build_files(family: str) -> Mapping[str, dict[str, Any] | bytes]:
    config = build_config(family)
    match config["model_type"]:
        case "speecht5":
            return {
                "config.json": config,
                "spm_char.model": speecht5.build_vocabulary(),
                "tokenizer_config.json": {"tokenizer_class": "SpeechT5Tokenizer"},
                f"{speecht5.VOCODER}/config.json": speecht5.build_vocoder(),
            }
        case "dia":
            return {
                "config.json": config,
                "preprocessor_config.json": dia.build_front_end(),
                "tokenizer_config.json": {"tokenizer_class": "DiaTokenizer"},
                f"{dia.CODEC}/config.json": dia.build_codec(),
            }
        case "whisper":
            return {
                "config.json": config,
                "preprocessor_config.json": whisper.build_front_end(),
                "tokenizer.json": _build_tokenizer(whisper.SPECIAL),
                "tokenizer_config.json": whisper.build_tokenizer_config(),
            }
    sees_images = config["model_type"] == "idefics3"
    return {
        "config.json": config,
        "tokenizer.json": _build_tokenizer(idefics3.SPECIAL if sees_images else SPECIAL),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": POSITIONS,
            "bos_token": "<s>",
            "eos_token": "</s>",
            "pad_token": "<pad>",
            "unk_token": "<unk>",
            "chat_template": CHAT_TEMPLATE,
        },
        **(idefics3.build_processor() if sees_images else {}),
        "generation_config.json": {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2},
    }


def _build_tokenizer(special: Sequence[str]) -> dict[str, Any]:
    """Return a tokenizer with the special tokens, one token per byte and no merges: it encodes any text and decodes to
    any bytes."""
    vocabulary = {token: number for number, token in enumerate([*special, *_list_byte_letters()])}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": number,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for number, token in enumerate(special)
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": [], "unk_token": None, "dropout": None},
    }


def _list_byte_letters() -> list[str]:
    """Return the letter of byte-level tokenizers for each byte: the byte itself if printable, else one from U+0100."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(hidden)) for byte in range(256)]
