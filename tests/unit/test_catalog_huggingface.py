"""Any config.json gives the record that the catalogue would hold; what cannot be read is said in one message."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from rayhelm.catalog import catalog
from rayhelm.catalog.huggingface import read_config
from rayhelm.errors import FleetError

CONFIGS = sorted((Path(__file__).parent / "catalog_configs").glob("*.json"))
ABOUT_THE_ENTRY = {"id", "aliases", "published", "source", "notes", "extra_source"}


def config(name: str) -> dict[str, Any]:
    path = next(path for path in CONFIGS if path.stem.endswith(name))
    keys: dict[str, Any] = json.loads(path.read_text())
    return keys


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_config_gives_the_architecture_of_the_catalogue_entry(path: Path) -> None:
    known = catalog().model(path.stem.replace("--", "/"))
    assert read_config(path).model_dump(exclude=ABOUT_THE_ENTRY) == known.model_dump(exclude=ABOUT_THE_ENTRY)


def test_a_folder_is_read_by_its_config_and_named_after_itself(tmp_path: Path) -> None:
    folder = tmp_path / "my-finetune"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config("phi-4")))
    assert read_config(str(folder)).id == "my-finetune"
    assert read_config(folder / "config.json").id == "my-finetune"


def test_a_parsed_config_needs_no_file() -> None:
    assert read_config(config("phi-4") | {"_name_or_path": "me/mine"}).id == "me/mine"


def test_a_hub_id_that_the_catalogue_knows_asks_nobody() -> None:
    assert read_config("Qwen/Qwen3-14B", transport=refusing()) is catalog().model("Qwen/Qwen3-14B")


def test_the_head_dimension_follows_from_the_heads_where_it_is_left_out() -> None:
    assert read_config(config("Llama-3.1-8B-Instruct")).attention.head_dim == 128


@pytest.mark.parametrize(
    ("change", "windowed"),
    [
        ({"sliding_window": 4096}, 40),
        ({"sliding_window": 32768}, 0),
        ({"sliding_window": 4096, "use_sliding_window": False}, 0),
        ({"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 28}, 12),
        ({"sliding_window": 4096, "layer_types": ["sliding_attention", "full_attention"] * 20}, 20),
    ],
)
def test_windowed_layers_are_counted_however_the_family_says_it(change: dict[str, Any], windowed: int) -> None:
    model = read_config(config("Mistral-Small-24B-Instruct-2501") | change)
    assert model.attention.windowed_layers == windowed


@pytest.mark.parametrize(
    ("quantization", "expected"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, {"bits": 4, "group_size": 128, "zero_bits": 4}),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1, "lm_head": True}, {"group_size": None, "lm_head": True}),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, {"bits": 4, "group_size": 64, "scale_bits": 32}),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True},
            {"bits": 4, "scale_bits": 8},
        ),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, {"bits": 8, "group_size": None}),
        ({"quant_method": "fp8", "modules_to_not_convert": ["re:.*self_attn.*"]}, {"bits": 8, "attention": False}),
        ({"quant_algo": "NVFP4"}, {"method": "modelopt", "bits": 4, "group_size": 16, "scale_bits": 8}),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 128}}},
            },
            {"bits": 4, "group_size": 128, "scale_bits": 16, "zero_bits": 0},
        ),
    ],
)
def test_each_way_of_quantising_is_understood(quantization: dict[str, Any], expected: dict[str, Any]) -> None:
    found = read_config(config("phi-4") | {"quantization_config": quantization}).quantization
    assert found is not None
    assert {key: getattr(found, key) for key in expected} == expected


@pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "vocab_size", "architectures"])
def test_a_missing_key_is_named(key: str) -> None:
    keys = config("phi-4")
    del keys[key]
    with pytest.raises(FleetError, match=f"config.json lacks `{key}`"):
        read_config(keys)


def test_a_missing_key_inside_a_part_is_named_with_the_part() -> None:
    keys = config("gemma-3-27b-it")
    del keys["text_config"]["hidden_size"]
    with pytest.raises(FleetError, match=r"lacks `text_config\.hidden_size`"):
        read_config(keys)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architectures": ["MambaForCausalLM"]}, "architecture MambaForCausalLM is not known"),
        ({"quantization_config": {"quant_method": "hqq"}}, "quantisation method 'hqq' is not known"),
        ({"layer_types": ["linear_attention"] * 40}, "layers of kind linear_attention are not supported"),
        ({"num_key_value_heads": 7}, "kv_heads 7 does not divide heads 40"),
        ({"hidden_size": "wide"}, "`hidden_size` is 'wide', not a whole number above zero"),
        ({"num_attention_heads": 0}, "`num_attention_heads` is 0"),
        ({"quantization_config": "awq"}, "quantization_config: is no object"),
        ({"quantization_config": {"quant_method": "gptq"}}, "cannot be read as gptq: KeyError 'bits'"),
        ({"quantization_config": {"quant_method": "awq", "bits": "four"}}, "cannot be read as awq"),
        ({"sliding_window": "wide"}, "cannot be read as Phi3ForCausalLM"),
        ({"architectures": []}, "architecture  is not known"),
        ({"vocab_size": -1}, "`vocab_size` is -1"),
        ({"torch_dtype": "int3"}, "dtype: Input should be 'bfloat16'"),
    ],
)
def test_what_cannot_be_planned_is_refused_in_words(change: dict[str, Any], message: str) -> None:
    with pytest.raises(FleetError) as error:
        read_config(config("phi-4") | change)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"), [("{", "is not JSON"), ("[]", "is not a model's config.json"), ("", "is not JSON")]
)
def test_a_file_that_is_no_config_is_said_with_its_path(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(FleetError, match=message) as error:
        read_config(path)
    assert error.value.problems[0].file == str(path)


def test_a_path_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match="cannot be read: No such file"):
        read_config(tmp_path / "config.json")


def test_the_hub_is_asked_for_what_the_catalogue_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example/")
    monkeypatch.setenv("HF_TOKEN", "secret")
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json=config("phi-4"))

    model = read_config("somebody/finetune", transport=httpx.MockTransport(answer))
    assert (model.id, model.layers) == ("somebody/finetune", 40)
    assert str(asked[0].url) == "https://mirror.example/somebody/finetune/resolve/main/config.json"
    assert asked[0].headers["authorization"] == "Bearer secret"


def test_an_offline_hub_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(FleetError) as error:
        read_config("Qwen/Qwen3-15B", transport=refusing())
    assert "HF_HUB_OFFLINE forbids" in str(error.value)
    assert "Qwen/Qwen3-14B" in str(error.value)
    assert "--config path/to/config.json" in str(error.value)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (httpx.Response(404), "answers 404"),
        (httpx.Response(401), "answers 401"),
        (httpx.Response(200, text="<html>"), "cannot be reached"),
        (httpx.Response(200, json=[]), "answers no config.json"),
    ],
)
def test_a_hub_that_fails_leaves_the_nearest_names_and_a_way_on(
    monkeypatch: pytest.MonkeyPatch, answer: httpx.Response, message: str
) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with pytest.raises(FleetError) as error:
        read_config("Qwen/Qwen3-15B", transport=httpx.MockTransport(lambda _: answer))
    assert message in str(error.value)
    assert "--config path/to/config.json" in str(error.value)


def test_a_hub_that_cannot_be_reached_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with pytest.raises(FleetError, match="cannot be reached"):
        read_config("Qwen/Qwen3-15B", transport=refusing())


def test_a_name_that_is_no_hub_id_asks_nobody() -> None:
    with pytest.raises(FleetError, match="unknown model 'Qwen3-15B'"):
        read_config("Qwen3-15B", transport=refusing())


def refusing() -> httpx.MockTransport:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no network in tests", request=request)

    return httpx.MockTransport(refuse)
