"""Architectures that rayhelm can read: one file in `data/architectures/` each, with what differs from Llama."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field

from rayhelm.facts.closed import Closed

__all__ = ["Architecture", "find_architecture", "find_text_architecture", "list_architectures"]

_FOLDER = Path(__file__).parent.parent / "data" / "architectures"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_HEADS = {
    "ForSequenceClassification": "score",
    "ForRewardModel": "score",
    "ForTokenClassification": "score",
    "Model": "none",
}
"""Output head by end of the class name: vLLM serves each decoder as a classifier or an embedding model too."""


class Architecture(Closed):
    """How to read the config.json of one family of models."""

    classes: tuple[str, ...] = Field(min_length=1)
    """Names in `architectures` of config.json."""
    model_types: tuple[str, ...] = ()
    """Names in `model_type` of a nested text part, whose `architectures` is often absent."""
    reader: str = "decoder"
    """Function that reads the general keys: `decoder`, `bert`, `whisper`."""
    keys: dict[str, str] = {}
    """This family's name of a general key: `hidden_size: n_embd`."""
    defaults: dict[str, Any] = {}
    """Values of absent keys, from the family's configuration class in transformers."""
    nested_defaults: dict[str, Any] = {}
    """Values of absent keys where the language model is a part of a wrapper, which states only what differs."""
    record: dict[str, Any] = {}
    """Fields of the record that are the same in each model of the family."""
    parts: tuple[str, ...] = ()
    """Readers of parts: experts, latent attention, recurrence. In order."""
    text: str = ""
    """Key of the nested language model; empty if its keys are at the top."""
    text_type: str = ""
    """`model_type` of the language model, where the nested part does not state it."""
    tower: str = ""
    """Reader of the vision or audio tower."""
    tower_key: str = "vision_config"
    """Key of the nested tower."""
    tower_defaults: dict[str, Any] = {}
    """Values of absent keys of the tower."""
    source: str
    """Where the structure was read."""


def find_architecture(name: str) -> tuple[Architecture, str] | None:
    """Return the architecture of a class name and its output head; None if it is not known. An empty head is the
    architecture's own."""
    if found := _index().get(name):
        return found, ""
    for end, head in _HEADS.items():
        if name.endswith(end) and (found := _index().get(f"{name.removesuffix(end)}ForCausalLM")):
            return found, head
    return None


def find_text_architecture(model_type: str) -> Architecture | None:
    """Return the architecture of a nested text part by its `model_type`."""
    return _by_type().get(model_type)


def list_architectures() -> tuple[str, ...]:
    """Return the class names that can be read, sorted."""
    return tuple(sorted(_index()))


@cache
def _read_all() -> tuple[Architecture, ...]:
    return tuple(
        Architecture.model_validate(yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER))
        for path in sorted(_FOLDER.glob("*.yaml"))
    )


@cache
def _index() -> dict[str, Architecture]:
    return {name: architecture for architecture in _read_all() for name in architecture.classes}


@cache
def _by_type() -> dict[str, Architecture]:
    return {name: architecture for architecture in _read_all() for name in architecture.model_types}
