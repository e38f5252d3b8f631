"""Turns a Hugging Face `config.json` into the catalogue's record."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from rayhelm.catalog import _decoders as decoders
from rayhelm.catalog import _encoders as encoders
from rayhelm.catalog._keys import Config
from rayhelm.catalog._quantized import quantization_of
from rayhelm.catalog.model import Model
from rayhelm.errors import FleetError, Problem

__all__ = ["model_of"]


def model_of(keys: Mapping[str, Any], name: str, where: str) -> Model:
    """The record of `keys`, a parsed config.json; `name` becomes its id unless it names itself."""
    config = Config(keys, where)
    architecture = next(iter(config.need("architectures")), "")
    if architecture not in _FAMILIES:
        raise config.problem(f"architecture {architecture} is not known", f"known: {', '.join(sorted(_FAMILIES))}")
    try:
        record = _FAMILIES[architecture](config)
    except (AttributeError, TypeError, ValueError) as error:
        raise config.problem(f"cannot be read as {architecture}: {error}") from None
    quantization = quantization_of(keys, record["layers"], where)
    try:
        return Model.model_validate(
            {"id": name, "architecture": architecture, "quantization": quantization, "source": where, **record}
        )
    except ValidationError as error:
        problems = [
            Problem(found["msg"], path=".".join(map(str, found["loc"])), file=where) for found in error.errors()
        ]
        raise FleetError(problems) from None


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
