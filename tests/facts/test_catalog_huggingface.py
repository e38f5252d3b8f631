"""Any config.json gives the record that the catalog would hold; what cannot be read is said in one message."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from rayhelm.errors import FleetError, Problem
from rayhelm.facts import load_catalog
from rayhelm.facts.huggingface import read_config, resolve
from shared.fits import fit

CONFIGS = sorted((Path(__file__).parent / "catalog_configs").glob("*.json"))
ABOUT_THE_ENTRY = {"id", "aliases", "published", "source", "notes", "extra_source", "needs_token"}


def config(name: str) -> dict[str, Any]:
    path = next(path for path in CONFIGS if path.stem.endswith(name))
    keys: dict[str, Any] = json.loads(path.read_text())
    return keys


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_config_gives_the_architecture_of_the_catalog_entry(path: Path) -> None:
    known = load_catalog().model(path.stem.replace("--", "/"))
    assert read_config(path).model_dump(exclude=ABOUT_THE_ENTRY) == known.model_dump(exclude=ABOUT_THE_ENTRY)


def test_folder_is_read_by_its_config_and_named_after_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "my-finetune"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config("phi-4")))
    assert read_config(str(folder)).id == "my-finetune"
    assert read_config(folder / "config.json").id == "my-finetune"


def test_parsed_config_needs_no_file() -> None:
    assert read_config(config("phi-4") | {"_name_or_path": "me/mine"}).id == "me/mine"


def test_hub_id_of_the_catalog_sends_no_request() -> None:
    assert read_config("Qwen/Qwen3-14B", transport=refusing()) is load_catalog().model("Qwen/Qwen3-14B")


def test_missing_head_dimension_is_derived_from_the_heads() -> None:
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
def test_windowed_layers_are_counted_for_each_family(change: dict[str, Any], windowed: int) -> None:
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
        ({"quant_algo": "MXFP8"}, {"method": "modelopt_mxfp8", "bits": 8}),
        ({"quant_algo": "MIXED_PRECISION"}, {"method": "modelopt_mixed", "bits": 8}),
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
def test_each_quantization_is_read(quantization: dict[str, Any], expected: dict[str, Any]) -> None:
    found = read_config(config("phi-4") | {"quantization_config": quantization}).quantization
    assert found is not None
    assert {key: getattr(found, key) for key in expected} == expected


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ({"layers.0.mlp.experts": {"quant_algo": "W4A16_NVFP4"}, "lm_head": {"quant_algo": "FP8"}}, (4, True)),
        ({"layers.0.mlp.gate_proj": {"quant_algo": "W4A16_NVFP4"}, "q_proj": {"quant_algo": "FP8"}}, (8, False)),
        ({}, (8, False)),
    ],
)
def test_mixed_precision_never_counts_fewer_bits_than_stored(layers: Any, expected: tuple[int, bool]) -> None:
    entry = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": layers}
    found = read_config(config("phi-4") | {"quantization_config": entry}).quantization
    assert found is not None
    assert (found.bits, found.only_experts) == expected


@pytest.mark.parametrize("prefix", ["re:.*", "model.layers.%d."])
def test_parts_that_most_layers_keep_are_not_counted_as_quantized(prefix: str) -> None:
    names = [f"{prefix % layer if '%' in prefix else prefix}{part}*" for layer in range(61)
             for part in ("self_attn", "mlp.shared_experts")]  # fmt: skip
    entry = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": names}
    found = read_config(config("DeepSeek-V3") | {"quantization_config": entry}).quantization
    assert found is not None
    assert found.only_experts


@pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "vocab_size", "architectures"])
def test_missing_key_is_named(key: str) -> None:
    keys = config("phi-4")
    del keys[key]
    with pytest.raises(FleetError, match=f"config.json: {key}: is missing"):
        read_config(keys)


def test_missing_key_inside_a_part_is_named_with_the_part() -> None:
    keys = config("gemma-3-27b-it")
    del keys["text_config"]["hidden_size"]
    with pytest.raises(FleetError, match=r"text_config\.hidden_size: is missing"):
        read_config(keys)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architectures": ["RwkvForCausalLM"]}, "architectures: 'RwkvForCausalLM' is not known"),
        ({"quantization_config": {"quant_method": "hqq"}}, "quantization_config.quant_method: 'hqq' is not known"),
        ({"layer_types": ["linear_attention"] * 40}, "layer_types: linear_attention is not supported"),
        ({"num_key_value_heads": 7}, "num_attention_heads: kv_heads 7 does not divide heads 40"),
        ({"hidden_size": "wide"}, "hidden_size: is 'wide', not a whole number from 1"),
        ({"num_attention_heads": 0}, "num_attention_heads: is 0"),
        ({"quantization_config": "awq"}, "quantization_config: is 'awq', not an object"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantization_config.bits: is missing"),
        (
            {"quantization_config": {"quant_method": "awq", "bits": "four"}},
            "quantization_config.bits: is 'four', not a whole number",
        ),
        ({"sliding_window": "wide"}, "sliding_window: is 'wide', not a whole number"),
        ({"architectures": []}, "architectures: is missing or empty"),
        ({"vocab_size": -1}, "vocab_size: is -1"),
        ({"torch_dtype": "int3"}, "torch_dtype: is 'int3', none of bfloat16"),
        ({"architectures": 5}, "architectures: is 5, not a list of texts"),
        ({"architectures": [["x"]]}, "architectures: is [['x']], not a list of texts"),
        ({"architectures": "LlamaForCausalLM"}, '"architectures": ["LlamaForCausalLM"]'),
        ({"tie_word_embeddings": "false"}, '"tie_word_embeddings": false'),
        ({"num_hidden_layers": 1_000_000}, "num_hidden_layers: is 1000000, not a whole number from 1 to 1,000"),
        ({"hidden_size": 1e300}, "hidden_size: is 1e+300, not a whole number"),
        ({"hidden_size": 10**300}, "hidden_size: is 1000"),
        ({"model_type": "gemma2", "sliding_window": 8, "sliding_window_pattern": 0}, "sliding_window_pattern: is 0"),
        ({"model_type": ["gemma2"], "sliding_window": 8}, "model_type: is ['gemma2'], not a text"),
        ({"num_attention_heads": 9999}, "num_attention_heads: is 9999, not a whole number from 1 to 5,120"),
        (
            {"quantization_config": {"quant_method": "fp8", "weight_block_size": [0, 0]}},
            "quantization_config.weight_block_size: is [0, 0], not two whole numbers",
        ),
        (
            {"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {}}},
            "quantization_config.config_groups: is empty",
        ),
    ],
)
def test_unsupported_config_is_refused_with_a_message(change: dict[str, Any], message: str) -> None:
    with pytest.raises(FleetError) as error:
        read_config(config("phi-4") | change)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a model's config.json"),
        ("", "is not JSON"),
        ("[" * 5000 + "]" * 5000, "nested too deeply"),
        ('{"hidden_size": ' + "9" * 5000 + "}", "too many digits"),
        (" " * 5_000_000, "larger than 4 MiB"),
    ],
)
def test_file_without_a_config_is_refused_with_its_path(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(FleetError, match=message) as error:
        read_config(path)
    assert error.value.problems[0].file == str(path)
    assert error.value.problems[0].fix


def test_what_is_wrong_in_a_config_has_its_line_and_a_fix(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{\n\t"architectures": ["Gemma2ForCausalLM"],\n\t"hidden_size": true,\n')
    assert problem_in(path).line == 4
    path.write_text(path.read_text() + '\t"vocab_size": 8\n}')
    found = problem_in(path)
    assert (found.file, found.path, found.line) == (str(path), "hidden_size", 3)
    assert found.fix


def test_line_of_a_nested_key_is_that_of_the_key(tmp_path: Path) -> None:
    keys = config("gemma-3-27b-it")
    keys["hidden_size"] = 1
    keys["text_config"]["hidden_size"] = 0
    path = tmp_path / "config.json"
    path.write_text(json.dumps(keys, indent=2))
    line = problem_in(path).line
    assert line is not None
    assert path.read_text().splitlines()[line - 1].startswith('    "hidden_size": 0')


def problem_in(path: Path) -> Problem:
    with pytest.raises(FleetError) as error:
        read_config(path)
    return error.value.problems[0]


NONSENSE: list[Any] = [
    None, 0, -1, 1, 7, 2**24, 10**300, 1e300, 0.5, True, "", "false", "[/foo]", "\x1b[31m", [], ["x"], [["x"]], [0, 0],
    {}, {"a": {}},
]  # fmt: skip


@pytest.mark.parametrize("name", ["gemma-3-27b-it", "DeepSeek-V3", "Qwen3-32B-AWQ", "405B-Instruct-FP8-dynamic"])
def test_wrong_value_of_any_key_is_read_or_refused_with_a_fix(name: str) -> None:
    """A value is read, or refused with its key and a fix in at most two lines."""
    whole, gpus = config(name), [load_catalog().gpu("H100-SXM-80GB")]
    for path in keys_of(whole):
        for nonsense in NONSENSE:
            try:
                fit(read_config(changed(whole, path, nonsense)), gpus)
            except FleetError as error:
                for problem in error.problems:
                    assert problem.path
                    assert problem.fix
                    assert len(problem.message) < 250
                    assert "\x1b" not in str(problem)


def keys_of(part: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for key, value in part.items():
        yield (key,)
        if isinstance(value, dict):
            yield from ((key, *inner) for inner in keys_of(value))


def changed(part: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    return part | {path[0]: changed(part[path[0]], path[1:], value) if path[1:] else value}


def test_unusable_publisher_name_is_replaced_by_the_file_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    for name in (5, "", "\x1b[31mred", "n" * 300):
        path.write_text(json.dumps(config("phi-4") | {"_name_or_path": name}))
        assert read_config(path).id == "mine"


def test_model_is_resolved_relative_to_the_fleet_folder(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text(json.dumps(config("phi-4")))
    for name in ("mine", "./mine", "mine/config.json"):
        assert resolve(name, tmp_path).layers == 40
    assert resolve("Phi-4", tmp_path) is load_catalog().model("microsoft/phi-4")


def test_catalog_model_has_precedence_over_a_folder(tmp_path: Path) -> None:
    (tmp_path / "phi-4").mkdir()
    (tmp_path / "phi-4" / "config.json").write_text("{}")
    assert resolve("phi-4", tmp_path) is load_catalog().model("phi-4")
    with pytest.raises(FleetError, match="architectures"):
        resolve("./phi-4", tmp_path)


def test_typed_name_may_be_any_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.json").write_text(json.dumps(config("phi-4")))
    for name in ("~/mine.json", str(tmp_path / "mine.json")):
        assert resolve(name, None).id == "mine"


@pytest.mark.parametrize(
    "name", ["s3://b/x", "./x", "", " ", "x" * 300, "x" * 300 + ".json", "~no-such-user/x", "Qwen3-15B"]
)
def test_unknown_name_is_refused_with_how_to_name_a_model(name: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(FleetError) as error:
        resolve(name, tmp_path)
    assert "`architecture: path/to/config.json`" in str(error.value)
    assert "--config path/to/config.json" in str(error.value)
    assert len(str(error.value)) < 800


def test_missing_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match="cannot be read: No such file"):
        read_config(tmp_path / "config.json")


def test_hub_is_asked_when_the_catalog_lacks_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example/")
    monkeypatch.setenv("HF_TOKEN", "secret")
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json=config("phi-4"))

    model = read_config("example/finetune", transport=httpx.MockTransport(answer))
    assert (model.id, model.layers) == ("example/finetune", 40)
    assert str(asked[0].url) == "https://mirror.example/example/finetune/resolve/main/config.json"
    assert asked[0].headers["authorization"] == "Bearer secret"


def test_offline_hub_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(FleetError) as error:
        read_config("Qwen/Qwen3-15B", transport=refusing())
    assert "HF_HUB_OFFLINE is set" in str(error.value)
    assert "Qwen/Qwen3-14B" in str(error.value)
    assert "--config path/to/config.json" in str(error.value)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (httpx.Response(404), "answers 404"),
        (httpx.Response(401), "answers 401"),
        (httpx.Response(200, text="<html>"), "answers no config.json"),
        (httpx.Response(200, json=[]), "answers no config.json"),
    ],
)
def test_failing_hub_gives_the_nearest_names_and_a_fix(
    monkeypatch: pytest.MonkeyPatch, answer: httpx.Response, message: str
) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with pytest.raises(FleetError) as error:
        read_config("Qwen/Qwen3-15B", transport=httpx.MockTransport(lambda _: answer))
    assert message in str(error.value)
    assert "--config path/to/config.json" in str(error.value)


def test_unreachable_hub_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with pytest.raises(FleetError, match="cannot be reached"):
        read_config("Qwen/Qwen3-15B", transport=refusing())


def test_name_without_a_hub_id_sends_no_request() -> None:
    with pytest.raises(FleetError, match="unknown model 'Qwen3-15B'"):
        read_config("Qwen3-15B", transport=refusing())


def refusing() -> httpx.MockTransport:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no network in tests", request=request)

    return httpx.MockTransport(refuse)
