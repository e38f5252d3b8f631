"""The formulas meet transformers, parameter by parameter, without a byte of weights: models on the meta device."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rayhelm.facts import load_catalog
from rayhelm.facts.model import Checkpoint
from rayhelm.facts.tensors import count_weights

pytestmark = pytest.mark.serve

CONFIGS = sorted((Path(__file__).parent / "catalog_configs").glob("*.json"))
BIG = ("DeepSeek", "405B")
"""The same families are there in a smaller size, or are made smaller below."""


def parameters(build: Callable[[], Any]) -> int:
    import torch

    with torch.device("meta"):
        model = build()
    return sum(parameter.numel() for parameter in model.parameters())


def built(keys: dict[str, Any]) -> int:
    """Parameters of transformers' own class for a config.json, its quantisation left aside."""
    import transformers

    transformers.logging.set_verbosity_error()
    plain = {key: value for key, value in keys.items() if key not in {"quantization_config", "torch_dtype"}}
    family = getattr(transformers, keys["architectures"][0])
    return parameters(lambda: family(family.config_class(**plain)))


@pytest.mark.parametrize(
    "path", [path for path in CONFIGS if not any(name in path.stem for name in BIG)], ids=lambda path: path.stem
)
def test_parameters_equal_those_of_transformers(path: Path) -> None:
    model = load_catalog().model(path.stem.replace("--", "/"))
    assert built(json.loads(path.read_text())) == count_weights(model).parameters


def test_latent_attention_and_shared_experts_equal_transformers() -> None:
    """DeepSeek V3 with 4 layers in place of 61. The router's correction is a buffer there, not a parameter."""
    keys = json.loads(next(path for path in CONFIGS if path.stem.endswith("DeepSeek-V3")).read_text())
    model = load_catalog().model("deepseek-ai/DeepSeek-V3").model_copy(update={"layers": 4})
    assert built(keys | {"num_hidden_layers": 4}) == count_weights(model).parameters - _corrections(model)


def test_speecht5_and_its_vocoder_are_counted() -> None:
    from transformers import SpeechT5Config, SpeechT5ForTextToSpeech, SpeechT5HifiGan, SpeechT5HifiGanConfig

    speech = parameters(lambda: SpeechT5ForTextToSpeech(SpeechT5Config()))
    vocoder = parameters(lambda: SpeechT5HifiGan(SpeechT5HifiGanConfig()))
    assert speech + vocoder == count_weights(load_catalog().model("microsoft/speecht5_tts")).parameters


def test_dia_and_its_codec_are_counted() -> None:
    from transformers import DacConfig, DacModel, DiaConfig, DiaForConditionalGeneration

    speech = parameters(lambda: DiaForConditionalGeneration(DiaConfig()))
    codec = parameters(lambda: DacModel(DacConfig(sampling_rate=44100)))
    assert speech + codec == count_weights(load_catalog().model("nari-labs/Dia-1.6B-0626")).parameters


def _corrections(model: Checkpoint) -> int:
    assert model.experts is not None
    return (model.layers - model.experts.dense_layers) * model.experts.count
