"""What the files beside a config.json say about the model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rayhelm.errors import Fix
from rayhelm.facts._keys import Config
from rayhelm.facts._quantized import parse_quantization

__all__ = ["QUANTIZATION_FILE", "Beside", "check_quantization", "limit_context", "read_beside"]

_SENTENCE_FILES = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
"""In the order of vLLM, which takes the first one."""
QUANTIZATION_FILE = "hf_quant_config.json"


@dataclass(frozen=True)
class Beside:
    """Values of the other files; None without the file or the key."""

    quantization: Mapping[str, Any] | None = None
    """Of `hf_quant_config.json`, where NVIDIA's ModelOpt writes it."""
    sentence_tokens: int | None = None
    """`max_seq_length` of Sentence Transformers."""
    tokenizer_tokens: int | None = None
    """`model_max_length` of the tokenizer."""


def read_beside(read: Callable[[str], Mapping[str, Any] | None]) -> Beside:
    """Return what the files say. `read` returns the keys of a file by its name, or None."""
    quantization = (read(QUANTIZATION_FILE) or {}).get("quantization")
    sentence = next((found for name in _SENTENCE_FILES if (found := read(name))), {})
    tokenizer = read("tokenizer_config.json") or {}
    return Beside(
        quantization if isinstance(quantization, Mapping) else None,
        _get_tokens(sentence, "max_seq_length"),
        _get_tokens(tokenizer, "model_max_length"),
    )


def limit_context(record: Mapping[str, Any], config: Config, beside: Beside) -> dict[str, Any]:
    """Return the longest context of an encoder or embedding model, as vLLM bounds it: Sentence Transformers state it,
    and the tokenizer bounds models that pool and have absolute positions."""
    longest = record["max_context"]
    is_absolute = config.pick("position_embedding_type").get("position_embedding_type", "absolute") == "absolute"
    if not record.get("causal", True) and record.get("positions") and is_absolute and beside.tokenizer_tokens:
        longest = min(longest, beside.tokenizer_tokens)
    return {"max_context": beside.sentence_tokens or longest}


def check_quantization(config: Config, layers: int, beside: Beside, *, has_latent_cache: bool) -> None:
    """Raise FleetError if config.json and the file beside it state different weights. For the cache, config.json
    counts: published checkpoints leave it out there."""
    if beside.quantization is None or not config.has("quantization_config"):
        return
    own = parse_quantization(config, layers, has_latent_cache=has_latent_cache)
    other = parse_quantization(
        config.with_values({"quantization_config": dict(beside.quantization)}),
        layers,
        has_latent_cache=has_latent_cache,
    )
    if own is None or other is None or own.bits == other.bits:
        return
    states = [f"{each.method} weights of {each.bits:g} bits" for each in (own, other)]
    fix = Fix.advice(
        f"vLLM reads this file: if it is right, remove {QUANTIZATION_FILE}; else remove `quantization_config`, and vLLM"
        f" reads {QUANTIZATION_FILE}"
    )
    raise config.problem(
        "quantization_config", f"states {states[0]}, and {QUANTIZATION_FILE} beside it {states[1]}", fix
    )


def _get_tokens(keys: Mapping[str, Any], key: str) -> int | None:
    """Return a number of tokens. Tokenizers without a bound state a huge float."""
    value = keys.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**24 else None
