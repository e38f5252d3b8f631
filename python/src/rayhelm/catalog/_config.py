"""Convert a Hugging Face `config.json` into the catalog's record."""

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from rayhelm.catalog import _decoders as decoders
from rayhelm.catalog import _encoders as encoders
from rayhelm.catalog._keys import Config
from rayhelm.catalog._origin import Origin, shown
from rayhelm.catalog._quantized import parse_quantization
from rayhelm.catalog.model import Checkpoint
from rayhelm.errors import Fix, FleetError, Problem

__all__ = ["parse_model"]


def parse_model(keys: Mapping[str, Any], name: str, origin: Origin) -> Checkpoint:
    """Return the record of `keys`, a parsed config.json; `name` becomes its id."""
    config = Config(keys, origin)
    architecture = _get_architecture(config)
    record = _FAMILIES[architecture](config)
    quantization = parse_quantization(config, record["layers"])
    try:
        return Checkpoint.model_validate(
            {"id": name, "architecture": architecture, "quantization": quantization, "source": origin.file, **record}
        )
    except ValidationError as error:
        raise FleetError([_build_contradiction(config, found) for found in error.errors()]) from None


def _get_architecture(config: Config) -> str:
    named = config.texts("architectures")
    if not named:
        raise config.problem("architectures", "is missing or empty", Fix(value=["LlamaForCausalLM"]))
    if named[0] not in _FAMILIES:
        near = difflib.get_close_matches(named[0][:80], _FAMILIES, n=3, cutoff=0.0)
        fix = Fix.advice(f"`architecture` in the fleet file can name a similar model; nearest known: {', '.join(near)}")
        raise config.problem("architectures", f"{shown(named[0])} is not known", fix)
    return named[0]


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

_FAMILIES: dict[str, Callable[[Config], dict[str, Any]]] = {
    "LlamaForCausalLM": decoders.decoder,
    "MistralForCausalLM": decoders.decoder,
    "Phi3ForCausalLM": decoders.decoder,
    "Qwen2ForCausalLM": decoders.qwen2,
    "Qwen3ForCausalLM": decoders.qwen3,
    "Qwen3MoeForCausalLM": decoders.qwen3_moe,
    "MixtralForCausalLM": decoders.mixtral,
    "GptOssForCausalLM": decoders.gpt_oss,
    "DeepseekV2ForCausalLM": decoders.deepseek,
    "DeepseekV3ForCausalLM": decoders.deepseek,
    "Gemma2ForCausalLM": decoders.gemma2,
    "Gemma3ForCausalLM": decoders.gemma3_text,
    "Gemma3ForConditionalGeneration": encoders.gemma3,
    "BertModel": encoders.bert,
    "BertForSequenceClassification": encoders.reranker(encoders.bert),
    "XLMRobertaModel": encoders.xlm_roberta,
    "XLMRobertaForSequenceClassification": encoders.reranker(encoders.xlm_roberta),
    "WhisperForConditionalGeneration": encoders.whisper,
}
