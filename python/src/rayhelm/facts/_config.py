"""Convert a Hugging Face `config.json` into the catalog's record."""

import difflib
import shlex
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.facts._architecture import Architecture, find_architecture, find_text_architecture, list_architectures
from rayhelm.facts._beside import Beside, check_quantization, limit_context
from rayhelm.facts._decoders import Record, decoder
from rayhelm.facts._encoders import READERS
from rayhelm.facts._keys import Config
from rayhelm.facts._origin import Origin, shown
from rayhelm.facts._parts import LAYER_KINDS, PARTS
from rayhelm.facts._quantized import parse_quantization
from rayhelm.facts._towers import TOWERS
from rayhelm.facts.model import Checkpoint

__all__ = ["parse_model"]


def parse_model(keys: Mapping[str, Any], name: str, origin: Origin, beside: Beside | None = None) -> Checkpoint:
    """Return the record of `keys`, a parsed config.json; `name` becomes its id. `beside`: other files of its folder."""
    beside = beside or Beside()
    config = Config(keys, origin)
    named, architecture, head = _get_architecture(config)
    record = _read(config, architecture)
    record |= _read_head(record, head)
    record |= limit_context(record, config, beside)
    entry = config.part(architecture.text) if architecture.text and _has_quantization(config, architecture) else config
    has_latent_cache = bool(record["attention"].get("mla"))
    if beside.quantization and not entry.has("quantization_config") and not entry.has("compression_config"):
        entry = entry.with_values({"quantization_config": dict(beside.quantization)})
    check_quantization(entry, record["layers"], beside, has_latent_cache=has_latent_cache)
    quantization = parse_quantization(entry, record["layers"], has_latent_cache=has_latent_cache)
    try:
        return Checkpoint.model_validate(
            {"id": name, "architecture": named, "quantization": quantization, "source": origin.file, **record}
        )
    except ValidationError as error:
        raise FleetError([_build_contradiction(config, found) for found in error.errors()]) from None


def _has_quantization(config: Config, architecture: Architecture) -> bool:
    """Return whether only the nested text part has a quantization (Kimi K2.5)."""
    if config.has("quantization_config") or not config.has(architecture.text):
        return False
    return config.part(architecture.text).has("quantization_config")


def _read(config: Config, architecture: Architecture) -> Record:
    if architecture.text and config.has(architecture.text):
        record = _read_nested(config, architecture)
    else:
        record = _read_text(config, architecture)
    if architecture.tower and config.has(architecture.tower_key):
        tower = config.part(architecture.tower_key, architecture.tower_defaults)
        TOWERS[architecture.tower](config, tower, record)
    return record


def _read_nested(config: Config, architecture: Architecture) -> Record:
    """Read the nested language model by its own architecture, with what the wrapper fixes."""
    text = config.part(architecture.text, architecture.defaults)
    inner = _find_inner(text, architecture)
    if inner is not architecture and not inner.text:
        text = text.with_defaults(architecture.defaults)
    dtypes = {key: config.text(key) for key in ("torch_dtype", "dtype") if config.has(key)}
    tied = {"tie_word_embeddings": config.flag("tie_word_embeddings", False)} if _states_tie(config) else {}
    usual = {**inner.nested_defaults, **tied, **architecture.defaults} | (dtypes if not _has_dtype(text) else {})
    record = _read_text(text.with_defaults(usual), inner)
    return _merge(record, architecture.record)


def _states_tie(config: Config) -> bool:
    return config.has("tie_word_embeddings")


def _has_dtype(text: Config) -> bool:
    return text.has("torch_dtype") or text.has("dtype")


def _find_inner(text: Config, architecture: Architecture) -> Architecture:
    kind = text.text("model_type", architecture.text_type)
    if not kind:
        return architecture
    for name in text.texts("architectures"):
        if found := find_architecture(name):
            return found[0]
    if inner := find_text_architecture(kind):
        return inner
    known = Fix.advice("the language model of this wrapper is of a kind that rayhelm cannot read")
    raise text.problem("model_type", f"{shown(kind)} is not known", known)


def _read_text(config: Config, architecture: Architecture) -> Record:
    config = config.with_names(architecture.keys).with_defaults(
        {architecture.keys.get(key, key): value for key, value in architecture.defaults.items()}
    )
    kinds = frozenset[str]().union(*(LAYER_KINDS.get(part, frozenset()) for part in architecture.parts))
    record = decoder(config, kinds) if architecture.reader == "decoder" else READERS[architecture.reader](config)
    for part in architecture.parts:
        PARTS[part](config, record)
    return _merge(record, architecture.record)


def _read_head(record: Record, head: str) -> Record:
    """Return what a classifier or an embedding model has in place of the output head."""
    if not head:
        return {}
    if record.get("output") == "pooler":
        return {"tasks": ["rerank"], "output": "classifier"} if head == "score" else {}
    return {"tasks": ["rerank" if head == "score" else "embed"], "output": head}


def _merge(record: Record, fixed: Mapping[str, Any]) -> Record:
    """Return the record with the values of `fixed`, key by key in nested parts."""
    merged = dict(record)
    for key, value in fixed.items():
        merged[key] = _merge(merged.get(key, {}), value) if isinstance(value, Mapping) else value
    return merged


def _get_architecture(config: Config) -> tuple[str, Architecture, str]:
    """Return the class that config.json names, how to read it, and its output head where that differs."""
    named = config.texts("architectures")
    if not named:
        raise config.problem("architectures", "is missing or empty", Fix(value=["LlamaForCausalLM"]))
    if found := find_architecture(named[0]):
        return named[0], *found
    near = difflib.get_close_matches(named[0][:80], list_architectures(), n=3, cutoff=0.0)
    others = (
        "`architecture` in the fleet file can name a similar model, or `memory` give its figures; nearest known: "
        + ", ".join(near)
    )
    fix = Fix.advice(others)
    if config.file.endswith(".json") and "://" not in config.file and config.has_text:
        built = "it builds the model with vLLM, where that is installed, and writes a file for `architecture`; or "
        fix = Fix(command=f"rayhelm catalog add {shlex.quote(config.file)}", why=built + others)
    raise config.problem("architectures", f"{shown(named[0])} is not known", fix)


def _build_contradiction(config: Config, found: ErrorDetails) -> Problem:
    """Return the problem of values that contradict each other, with the key of the config.json."""
    part = str(found["loc"][0]) if found["loc"] else ""
    message = found["msg"].removeprefix("Value error, ")
    return config.problem(_KEYS.get(part, part), message).problems[0]


_KEYS = {
    "attention": "num_attention_heads",
    "max_context": "max_position_embeddings",
    "": "num_hidden_layers",
}
"""Keys of config.json by part of the record, for errors of values that contradict each other."""
