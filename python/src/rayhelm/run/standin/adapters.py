"""Write tiny LoRA adapters with random weights, in PEFT's format, without its packages."""

import json
from array import array
from pathlib import Path
from random import Random

from rayhelm.run.standin.families import build_config

__all__ = ["ADAPTERS", "COUNT", "RANK", "write_adapters"]

ADAPTERS = "adapters"
"""Folder below the one of a tiny model, with a folder for each adapter, `0` to `3`."""
COUNT = 4
RANK = 8
_SCALE = 1000
"""The dummy weights of the model and its norms are below 0.001, and so are its hidden states; this outweighs them."""
_LAYER = "self_attn.o_proj"
"""The layer whose output is added to the hidden state: a random adapter there changes every answer."""


def write_adapters(family: str, folder: Path) -> None:
    """Write the adapters of a tiny model below its folder, only files that differ; none for encoders."""
    config = build_config(family)
    if "num_key_value_heads" not in config:
        return
    for number in range(COUNT):
        target = folder / ADAPTERS / str(number)
        target.mkdir(parents=True, exist_ok=True)
        description = {
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": family,
            "r": RANK,
            "lora_alpha": RANK * _SCALE,
            "target_modules": [_LAYER.rpartition(".")[2]],
            "bias": "none",
        }
        _write(target / "adapter_config.json", json.dumps(description, indent=2).encode())
        width = config["num_attention_heads"] * config.get("v_head_dim", config.get("head_dim", 0))
        weights = _build_weights(config["num_hidden_layers"], width, config["hidden_size"], Random(number))
        _write(target / "adapter_model.safetensors", weights)


def _build_weights(layers: int, inputs: int, outputs: int, random: Random) -> bytes:
    """Return a safetensors file: the length of the header, the header as JSON, and the numbers of all tensors."""
    header, data = {}, array("f")
    for layer in range(layers):
        for name, shape in (("lora_A", (RANK, inputs)), ("lora_B", (outputs, RANK))):
            start = len(data) * data.itemsize
            data.extend(random.gauss(0, 1) for _ in range(shape[0] * shape[1]))
            key = f"base_model.model.model.layers.{layer}.{_LAYER}.{name}.weight"
            header[key] = {"dtype": "F32", "shape": shape, "data_offsets": (start, len(data) * data.itemsize)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data.tobytes()


def _write(path: Path, content: bytes) -> None:
    if not path.is_file() or path.read_bytes() != content:
        path.write_bytes(content)
