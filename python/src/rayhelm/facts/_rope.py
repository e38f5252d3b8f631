"""Read the longest context from the rotary positions of a config.json, as vLLM derives it."""

from typing import Any

from rayhelm.facts._keys import Config

__all__ = ["read_contexts"]

_WITHOUT_FACTOR = frozenset({"su", "longrope", "llama3"})
"""Types whose `max_position_embeddings` is the scaled length already."""


def read_contexts(config: Config) -> dict[str, Any]:
    """Return `max_context`, and `usual_context` where vLLM takes a shorter one without `max_model_len`.

    The order is that of `_get_and_verify_max_len` in vllm 0.29 config/model.py."""
    longest = config.count("max_position_embeddings")
    # vLLM does not scale Gemma 3: its length is the scaled one.
    if "gemma3" in config.text("model_type", ""):
        return {"max_context": longest}
    factor, usual = 1.0, None
    for part in _list_scalings(config):
        kind = part.text("rope_type", part.text("type", "default"))
        original = part.count_or_none("original_max_position_embeddings")
        if kind in ("su", "longrope"):
            usual = config.count_or_none("original_max_position_embeddings") or original
        if kind in _WITHOUT_FACTOR:
            continue
        factor = part.number("factor", factor)
        if kind == "yarn":
            longest = original or config.count("original_max_position_embeddings", longest)
    scaled = max(1, int(longest * factor))
    return {"max_context": scaled} | ({"usual_context": usual} if usual and usual < scaled else {})


def _list_scalings(config: Config) -> list[Config]:
    """Return the scaling of all layers, or that of each kind of layer."""
    key = "rope_parameters" if config.is_object("rope_parameters") else "rope_scaling"
    if not config.is_object(key):
        return []
    part = config.part(key)
    nested = [part.part(kind) for kind in part.keys if part.is_object(kind)]
    return nested or [part]
