"""Folders of checkpoints: what files beside a config.json say, and `params.json` of Mistral."""

import json
from pathlib import Path
from typing import Any

import pytest

from rayhelm.errors import FleetError
from rayhelm.facts.huggingface import read_config
from rayhelm.facts.tensors import count_weights

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 2,
    "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 4096,
}  # fmt: skip
BERT = {
    "architectures": ["BertModel"], "model_type": "bert", "hidden_size": 384, "intermediate_size": 1536,
    "num_hidden_layers": 6, "num_attention_heads": 12, "vocab_size": 30522, "max_position_embeddings": 512,
}  # fmt: skip
ROBERTA = BERT | {
    "architectures": ["XLMRobertaForSequenceClassification"], "max_position_embeddings": 8194, "pad_token_id": 1,
    "position_embedding_type": "absolute", "type_vocab_size": 1, "num_labels": 1,
}  # fmt: skip
NVFP4 = {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "group_size": 16}}
STATIC = {"num_bits": 8, "type": "float", "dynamic": False}


def write(folder: Path, **files: dict[str, Any]) -> Path:
    for name, keys in files.items():
        (folder / f"{name}.json").write_text(json.dumps(keys))
    return folder


@pytest.mark.parametrize(
    ("keys", "files", "longest"),
    [
        (BERT, {}, 512),
        (BERT, {"sentence_bert_config": {"max_seq_length": 256}}, 256),
        (BERT, {"sentence_roberta_config": {"max_seq_length": 128}}, 128),
        (ROBERTA, {}, 8192),
        (ROBERTA, {"tokenizer_config": {"model_max_length": 512}}, 512),
        (ROBERTA, {"tokenizer_config": {"model_max_length": 1e30}}, 8192),
        (LLAMA, {"tokenizer_config": {"model_max_length": 512}}, 4096),
        (LLAMA, {"sentence_bert_config": {"max_seq_length": 2048}}, 2048),
    ],
)
def test_files_beside_the_config_bound_the_context(
    tmp_path: Path, keys: dict[str, Any], files: dict[str, dict[str, Any]], longest: int
) -> None:
    assert read_config(write(tmp_path, config=keys, **files) / "config.json").max_context == longest


def test_quantization_beside_the_config_is_read_by_the_start_of_its_name(tmp_path: Path) -> None:
    name = "org--model_"
    write(tmp_path, **{f"{name}config": LLAMA, f"{name}hf_quant_config": NVFP4, "hf_quant_config": {}})
    found = read_config(tmp_path / f"{name}config.json").quantization
    assert found is not None
    assert (found.method, found.bits, found.kv_bits) == ("modelopt", 4, 8)
    write(tmp_path, other=LLAMA)
    assert read_config(tmp_path / "other.json").quantization is None


def test_quantizations_that_agree_are_accepted(tmp_path: Path) -> None:
    own = {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": STATIC}
    write(tmp_path, config=LLAMA | {"quantization_config": own}, hf_quant_config=NVFP4)
    found = read_config(tmp_path / "config.json").quantization
    assert found is not None
    assert (found.bits, found.kv_bits) == (4, 8)


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "states modelopt weights of 8 bits, and"),
        ({"quant_method": "fp8"}, "states fp8 weights of 8 bits, and"),
    ],
)
def test_quantizations_that_disagree_are_refused_with_the_fix(
    tmp_path: Path, own: dict[str, Any], message: str
) -> None:
    write(tmp_path, config=LLAMA | {"quantization_config": own}, hf_quant_config=NVFP4)
    with pytest.raises(FleetError) as error:
        read_config(tmp_path / "config.json")
    assert f"{message} hf_quant_config.json beside it modelopt weights of 4 bits" in str(error.value)
    assert "remove hf_quant_config.json" in str(error.value.problems[0].fix)


def test_cache_is_that_of_the_config_where_the_file_beside_it_has_another(tmp_path: Path) -> None:
    own = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
    write(tmp_path, config=LLAMA | {"quantization_config": own}, hf_quant_config=NVFP4)
    found = read_config(tmp_path / "config.json").quantization
    assert found is not None
    assert found.kv_bits is None


PARAMS = {
    "dim": 4096, "n_layers": 8, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8,
    "norm_eps": 1e-05, "vocab_size": 32768, "rope_theta": 1e6,
}  # fmt: skip
LARGE = PARAMS | {
    "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "moe": {"num_experts": 16, "num_experts_per_tok": 4, "expert_hidden_dim": 2048, "num_shared_experts": 1,
            "first_k_dense_replace": 2, "route_every_n": 1, "routed_scale": 1.0},
    "llama_4_scaling": {"original_max_position_embeddings": 8192, "beta": 0.1},
}  # fmt: skip
VISION = {"image_size": 1024, "patch_size": 16, "hidden_size": 1024, "intermediate_size": 4096,
          "num_hidden_layers": 24, "num_attention_heads": 16, "num_channels": 3}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "architecture", "longest", "windowed"),
    [
        ({}, "MistralForCausalLM", 128_000, 0),
        ({"max_position_embeddings": 32768}, "MistralForCausalLM", 32768, 0),
        ({"sliding_window": [32768, None]}, "MistralForCausalLM", 128_000, 4),
        ({"sliding_window": 4096}, "MistralForCausalLM", 128_000, 8),
        ({"yarn": {"factor": 16, "original_max_position_embeddings": 16384}}, "MistralForCausalLM", 262_144, 0),
        ({"moe": {"num_experts": 8, "num_experts_per_tok": 2}}, "MixtralForCausalLM", 128_000, 0),
        ({"vision_encoder": VISION}, "Mistral3ForConditionalGeneration", 128_000, 0),
    ],
)
def test_params_of_mistral_are_read(
    tmp_path: Path, more: dict[str, Any], architecture: str, longest: int, windowed: int
) -> None:
    model = read_config(write(tmp_path, params=PARAMS | more) / "params.json")
    assert (model.architecture, model.max_context) == (architecture, longest)
    assert (model.layers, model.hidden, model.attention.kv_heads, model.vocab) == (8, 4096, 8, 32768)
    assert model.attention.windowed_layers == windowed
    assert bool(model.encoder) == ("vision_encoder" in more)


def test_folder_with_params_alone_is_a_model(tmp_path: Path) -> None:
    model = read_config(write(tmp_path, params=LARGE))
    assert model.attention.mla is not None
    assert model.experts is not None
    assert (model.experts.count, model.experts.dense_layers, model.experts.shared_intermediate) == (16, 2, 2048)
    dense = {key: value for key, value in PARAMS.items() if key != "head_dim"}
    assert read_config(write(tmp_path, params=dense)).attention.head_dim == 128


def test_weights_of_params_have_the_format_that_they_state(tmp_path: Path) -> None:
    plain = read_config(write(tmp_path, params=PARAMS))
    fp8 = read_config(write(tmp_path, params=PARAMS | {"quantization": {"qformat_weight": "fp8_e4m3"}}))
    assert fp8.quantization is not None
    assert count_weights(fp8).bytes < 0.6 * count_weights(plain).bytes
    with pytest.raises(FleetError, match="'int3', which vLLM does not read"):
        read_config(write(tmp_path, params=PARAMS | {"quantization": {"qformat_weight": "int3"}}))


def test_unknown_class_of_a_file_has_the_command_that_builds_it(tmp_path: Path) -> None:
    write(tmp_path, config=LLAMA | {"architectures": ["Zamba2ForCausalLM"]})
    with pytest.raises(FleetError) as error:
        read_config(tmp_path / "config.json")
    fix = error.value.problems[0].fix
    assert fix is not None
    assert fix.command == f"rayhelm catalog add {tmp_path / 'config.json'}"
    assert "`memory` give its figures" in fix.why
