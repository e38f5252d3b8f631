"""Turns a Hugging Face `config.json` into the catalogue's record, one small function per family."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from rayhelm.catalog._quantized import quantization_of
from rayhelm.catalog.model import Model
from rayhelm.errors import FleetError, Problem

__all__ = ["model_of"]

Record = dict[str, Any]


class Config:
    """A config.json that says which key it lacks, and where it was read."""

    def __init__(self, keys: Mapping[str, Any], where: str, inside: str = "") -> None:
        self.keys, self.where, self._inside = keys, where, inside

    def need(self, key: str) -> Any:
        if self.keys.get(key) is None:
            raise FleetError(
                Problem(
                    f"config.json lacks `{self._inside}{key}`", file=self.where, mend="take the publisher's own file"
                )
            )
        return self.keys[key]

    def get(self, key: str, default: Any = None) -> Any:
        value = self.keys.get(key)
        return default if value is None else value

    def part(self, name: str, defaults: Mapping[str, Any]) -> "Config":
        """A nested configuration, with the defaults that its publisher leaves out."""
        return Config({**defaults, **self.need(name)}, self.where, f"{name}.")


def model_of(keys: Mapping[str, Any], name: str, where: str) -> Model:
    """The record of `keys`, a parsed config.json; `name` becomes its id unless it names itself."""
    config = Config(keys, where)
    architecture = str((config.need("architectures") or ["nothing"])[0])
    if architecture not in _FAMILIES:
        raise FleetError(
            Problem(
                f"architecture {architecture} is not known",
                path="architectures",
                file=where,
                mend=f"known: {', '.join(sorted(_FAMILIES))}",
            )
        )
    record = _FAMILIES[architecture](config)
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


def _decoder(config: Config) -> Record:
    """Llama and all that differ from it by a flag: Mistral, Phi-3 and Phi-4; the ground of every decoder here."""
    heads, hidden = config.need("num_attention_heads"), config.need("hidden_size")
    bias = bool(config.get("attention_bias", False))
    return {
        "layers": config.need("num_hidden_layers"),
        "hidden": hidden,
        "intermediate": config.need("intermediate_size"),
        "vocab": config.need("vocab_size"),
        "max_context": config.need("max_position_embeddings"),
        "dtype": _dtype(config),
        "tied_embeddings": bool(config.get("tie_word_embeddings", False)),
        "mlp_bias": bool(config.get("mlp_bias", False)),
        "attention": {
            "heads": heads,
            "kv_heads": config.get("num_key_value_heads", heads),
            "head_dim": config.get("head_dim", hidden // heads),
            "qkv_bias": bias,
            "output_bias": bias,
            **_windows(config),
        },
    }


def _qwen2(config: Config) -> Record:
    record = _decoder(config)
    record["attention"] |= {"qkv_bias": True, "output_bias": False}
    return record


def _qwen3(config: Config) -> Record:
    record = _decoder(config)
    record["attention"]["qk_norm"] = True
    return record


def _qwen3_moe(config: Config) -> Record:
    if config.get("decoder_sparse_step", 1) != 1 or config.get("mlp_only_layers", []):
        raise FleetError(Problem("dense layers between layers of experts are not supported", file=config.where))
    return _qwen3(config) | {"experts": _experts(config, config.need("num_experts"))}


def _mixtral(config: Config) -> Record:
    experts = _experts(config, config.need("num_local_experts")) | {"intermediate": config.need("intermediate_size")}
    return _decoder(config) | {"experts": experts}


def _gpt_oss(config: Config) -> Record:
    record = _mixtral(config)
    record["attention"]["sinks"] = True
    record["experts"] |= {"router_bias": True, "expert_bias": True}
    return record


def _deepseek(config: Config) -> Record:
    """V2, V3, R1, Kimi K2. The layers of multi-token prediction are left out: vLLM loads them only to speculate."""
    wide = config.need("moe_intermediate_size")
    record = _decoder(config)
    ranks = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    mla = {key: config.need(key) for key in ranks} | {"q_lora_rank": config.get("q_lora_rank")}
    record["attention"] |= {"mla": mla, "head_dim": mla["qk_nope_head_dim"] + mla["qk_rope_head_dim"]}
    record["experts"] = _experts(config, config.need("n_routed_experts")) | {
        "shared_intermediate": wide * config.get("n_shared_experts", 0),
        "dense_layers": config.get("first_k_dense_replace", 0),
        "router_bias": config.get("topk_method") == "noaux_tc",
    }
    return record


def _gemma2(config: Config) -> Record:
    record = _decoder(Config({"tie_word_embeddings": True, **config.keys}, config.where))
    return record | {"norms": {"per_layer": 4}}


def _gemma3_text(config: Config) -> Record:
    record = _gemma2(config)
    record["attention"]["qk_norm"] = True
    return record


def _gemma3(config: Config) -> Record:
    text, vision = config.part("text_config", _GEMMA3_TEXT), config.part("vision_config", _SIGLIP)
    hidden, width = text.need("hidden_size"), vision.need("hidden_size")
    return _gemma3_text(text) | {
        "dtype": _dtype(config),
        "encoder": {
            "kind": "vision",
            "layers": vision.need("num_hidden_layers"),
            "hidden": width,
            "heads": vision.need("num_attention_heads"),
            "intermediate": vision.need("intermediate_size"),
            "patch": vision.need("patch_size"),
            "positions": (vision.need("image_size") // vision.need("patch_size")) ** 2,
        },
        "extra_parameters": hidden * width + width,
        "extra_source": "projector from image to text and its norm: hidden x width + width",
    }


def _bert(config: Config) -> Record:
    record = _decoder(config)
    record["attention"] |= {"qkv_bias": True, "output_bias": True}
    return record | {
        "tasks": ["embed"],
        "gated": False,
        "mlp_bias": True,
        "positions": record["max_context"],
        "token_types": config.get("type_vocab_size", 2),
        "causal": False,
        "output": "pooler",
        "norms": {"bias": True, "embedding": True, "final": False},
    }


def _xlm_roberta(config: Config) -> Record:
    """Positions start behind the padding token's, so the context is shorter by that and one."""
    record = _bert(config)
    return record | {"max_context": record["positions"] - config.get("pad_token_id", 1) - 1}


def _reranker(read: Callable[[Config], Record]) -> Callable[[Config], Record]:
    return lambda config: read(config) | {"tasks": ["rerank"], "output": "classifier"}


def _whisper(config: Config) -> Record:
    hidden, heads = config.need("d_model"), config.need("decoder_attention_heads")
    return {
        "tasks": ["transcribe"],
        "layers": config.need("decoder_layers"),
        "hidden": hidden,
        "intermediate": config.need("decoder_ffn_dim"),
        "gated": False,
        "mlp_bias": True,
        "vocab": config.need("vocab_size"),
        "tied_embeddings": True,
        "positions": config.need("max_target_positions"),
        "max_context": config.need("max_target_positions"),
        "dtype": _dtype(config),
        "attention": {"heads": heads, "kv_heads": heads, "head_dim": hidden // heads}
        | {"qkv_bias": True, "key_bias": False, "output_bias": True},
        "norms": {"per_layer": 3, "bias": True},
        "encoder": {
            "kind": "audio",
            "layers": config.need("encoder_layers"),
            "hidden": hidden,
            "heads": config.need("encoder_attention_heads"),
            "intermediate": config.need("encoder_ffn_dim"),
            "positions": config.need("max_source_positions"),
            "key_bias": False,
            "mel_bins": config.need("num_mel_bins"),
            "cross_attention": True,
        },
    }


def _experts(config: Config, count: int) -> Record:
    active = config.need("num_experts_per_tok")
    return {"count": count, "active": active, "intermediate": config.get("moe_intermediate_size")}


def _windows(config: Config) -> Record:
    """Which layers see only a window, by whatever key the family says it with."""
    window, layers = config.get("sliding_window"), config.need("num_hidden_layers")
    if kinds := config.get("layer_types"):
        if unknown := set(kinds) - {"full_attention", "sliding_attention"}:
            raise FleetError(
                Problem(f"layers of kind {', '.join(sorted(unknown))} are not supported", file=config.where)
            )
        windowed = kinds.count("sliding_attention")
    elif (
        window is None or window >= config.need("max_position_embeddings") or not config.get("use_sliding_window", True)
    ):
        windowed = 0
    elif config.get("use_sliding_window"):
        windowed = max(0, layers - config.need("max_window_layers"))
    elif config.get("model_type") in _WINDOW_PATTERN:
        every = config.get("sliding_window_pattern", _WINDOW_PATTERN[config.get("model_type")])
        windowed = layers - layers // every
    else:
        windowed = layers
    return {"sliding_window": window, "windowed_layers": windowed} if windowed else {}


def _dtype(config: Config) -> str:
    """Left out by some publishers (gpt-oss); on the card it is 16 bits either way."""
    dtype = str(config.get("torch_dtype", config.get("dtype", "bfloat16")))
    return dtype.removeprefix("torch.")


_WINDOW_PATTERN = {"gemma2": 2, "gemma3_text": 6, "gpt_oss": 2}
"""Every n-th layer sees everything, where a family's config.json leaves that to its code."""

_GEMMA3_TEXT = {
    "model_type": "gemma3_text",
    "vocab_size": 262208,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "max_position_embeddings": 131072,
}
"""Defaults of transformers' Gemma3TextConfig; Google's files name only what differs."""

_SIGLIP = {"num_hidden_layers": 27, "num_attention_heads": 16, "patch_size": 14}
"""Of the SigLIP tower that Gemma 3 carries."""

_FAMILIES: dict[str, Callable[[Config], Record]] = {
    "LlamaForCausalLM": _decoder,
    "MistralForCausalLM": _decoder,
    "Phi3ForCausalLM": _decoder,
    "Qwen2ForCausalLM": _qwen2,
    "Qwen3ForCausalLM": _qwen3,
    "Qwen3MoeForCausalLM": _qwen3_moe,
    "MixtralForCausalLM": _mixtral,
    "GptOssForCausalLM": _gpt_oss,
    "DeepseekV2ForCausalLM": _deepseek,
    "DeepseekV3ForCausalLM": _deepseek,
    "Gemma2ForCausalLM": _gemma2,
    "Gemma3ForCausalLM": _gemma3_text,
    "Gemma3ForConditionalGeneration": _gemma3,
    "BertModel": _bert,
    "BertForSequenceClassification": _reranker(_bert),
    "XLMRobertaModel": _xlm_roberta,
    "XLMRobertaForSequenceClassification": _reranker(_xlm_roberta),
    "WhisperForConditionalGeneration": _whisper,
}
