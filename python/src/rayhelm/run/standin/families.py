"""`config.json` of the tiny models, one per architecture family. Data, without imports of frameworks.

Sizes are the smallest that vLLM's CPU attention accepts (not a head size of 16) and that its Mixture-of-Experts kernels
can tile. The vocabulary is the one of `checkpoint.py`: 256 bytes and the special tokens.
"""

from collections.abc import Mapping
from typing import Any

from rayhelm.run.standin import dia, idefics3, speecht5, whisper

__all__ = ["POSITIONS", "VOCABULARY", "build_config", "is_family", "list_families"]

POSITIONS = 8192
"""Context length of a tiny model, in tokens."""
VOCABULARY = 320
"""256 bytes, the special tokens, and padding to a multiple of 64, which vLLM adds otherwise."""

_SHAPE: Mapping[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": POSITIONS,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
    "torch_dtype": "float32",
}
_GROUPED: Mapping[str, Any] = {"num_key_value_heads": 2, "head_dim": 32, "rms_norm_eps": 1e-5, "hidden_act": "silu"}
_BERT: Mapping[str, Any] = {"type_vocab_size": 2, "hidden_act": "gelu", "position_embedding_type": "absolute"}

_FAMILIES: Mapping[str, Mapping[str, Any]] = {
    "LlamaForCausalLM": {**_GROUPED, "model_type": "llama"},
    "MistralForCausalLM": {**_GROUPED, "model_type": "mistral", "sliding_window": None},
    "MixtralForCausalLM": {
        **_GROUPED,
        "model_type": "mixtral",
        "sliding_window": None,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
    },
    "Qwen2ForCausalLM": {**_GROUPED, "model_type": "qwen2", "use_sliding_window": False},
    "Qwen3ForCausalLM": {**_GROUPED, "model_type": "qwen3", "use_sliding_window": False},
    "Qwen3MoeForCausalLM": {
        **_GROUPED,
        "model_type": "qwen3_moe",
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 128,
        "decoder_sparse_step": 1,
        "norm_topk_prob": True,
        "mlp_only_layers": [],
    },
    "Gemma3ForCausalLM": {
        **_GROUPED,
        "model_type": "gemma3_text",
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": 32,
        "sliding_window": 1024,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "Phi3ForCausalLM": {**_GROUPED, "model_type": "phi3", "original_max_position_embeddings": POSITIONS},
    "DeepseekV3ForCausalLM": {
        "model_type": "deepseek_v3",
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "num_key_value_heads": 4,
        "q_lora_rank": 64,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "first_k_dense_replace": 1,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 128,
        "moe_layer_freq": 1,
        "n_group": 2,
        "topk_group": 1,
        "norm_topk_prob": True,
        "routed_scaling_factor": 2.5,
        "scoring_func": "sigmoid",
        "topk_method": "noaux_tc",
    },
    "BertModel": {**_BERT, "model_type": "bert", "layer_norm_eps": 1e-12},
    "XLMRobertaModel": {**_BERT, "model_type": "xlm-roberta", "layer_norm_eps": 1e-5},
    "XLMRobertaForSequenceClassification": {
        **_BERT,
        "model_type": "xlm-roberta",
        "layer_norm_eps": 1e-5,
        "num_labels": 1,
    },
    "Idefics3ForConditionalGeneration": {
        **idefics3.VISION,
        "text_config": {**_SHAPE, **_GROUPED, "model_type": "llama"},
    },
    "WhisperForConditionalGeneration": whisper.CONFIG,
    "SpeechT5ForTextToSpeech": speecht5.CONFIG,
    "DiaForConditionalGeneration": dia.CONFIG,
}


def list_families() -> tuple[str, ...]:
    """Return the architectures that have a tiny model."""
    return tuple(_FAMILIES)


def is_family(architecture: str) -> bool:
    """Return whether there is a tiny model of this architecture."""
    return architecture in _FAMILIES


def build_config(family: str) -> dict[str, Any]:
    """Return `config.json` of the tiny model of a family."""
    chosen = _FAMILIES[family]
    shape = {} if {"text_config", "decoder_config"} & set(chosen) else _SHAPE
    return {**shape, **chosen, "architectures": [family]}
