"""Choose the engine of a checkpoint by the architecture in its config.json."""

from typing import Any

from rayhelm.runtime.speech.dia import Dia
from rayhelm.runtime.speech.engine import SpeechEngine, find_folder
from rayhelm.runtime.speech.speecht5 import SpeechT5

__all__ = ["ENGINES", "load_engine"]

ENGINES: dict[str, type[Any]] = {"dia": Dia, "speecht5": SpeechT5}
"""Engines by transformers' type of the model."""


def load_engine(source: str, *, load_format: str = "auto", **parts: str) -> SpeechEngine:
    """Load a checkpoint with its other `parts`, each by its role. Raises ValueError for another kind of model."""
    from transformers import AutoConfig

    source, parts = find_folder(source), {role: find_folder(part) for role, part in parts.items()}
    kind = AutoConfig.from_pretrained(source).model_type
    if kind not in ENGINES:
        raise ValueError(f"{source} is a model of type `{kind}`; text to speech runs {', '.join(ENGINES)}")
    engine: SpeechEngine = ENGINES[kind](source, **parts, load_format=load_format)
    return engine
