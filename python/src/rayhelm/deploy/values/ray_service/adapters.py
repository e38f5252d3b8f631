"""LoRA adapters of a model."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Values

__all__ = ["AdapterName", "Lora", "LoraAdapter"]

AdapterName = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$", max_length=96)]
Source = Annotated[
    str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9._-]+|(/[A-Za-z0-9_][A-Za-z0-9._-]*)+)$")
]


class LoraAdapter(Values):
    """One LoRA adapter. Its key is the `model` that clients name in requests."""

    source: Source
    """Hub id (`org/name`) or absolute path in the container."""
    revision: Annotated[str, Field(pattern=r"^([0-9a-f]{40})?$")] = ""
    """Commit of the hub repository, 40 hex digits. Required for a hub id."""
    base_model: str = ""
    """`base_model_name_or_path` in its `adapter_config.json`; `source` of the model when empty."""


class Lora(Values):
    """LoRA adapters. A replica loads them when it starts, and they share its engine."""

    slots: Annotated[int, Field(ge=1)] = 1
    """Adapters that one batch can use (`max_loras`). Each slot takes GPU memory, used or not."""
    max_rank: Literal[1, 8, 16, 32, 64, 128, 256, 320, 512] = 16
    """Highest rank of an adapter (`max_lora_rank`)."""
    adapters: dict[AdapterName, LoraAdapter] = {}
    """Adapters by name. They need `image.includesRayhelm`: Ray Serve LLM's own ingress answers 404 to their names."""
