"""Data files of models that `rayhelm catalog add` writes: how plans read them, and what is refused without vLLM."""

from pathlib import Path

import pytest
import yaml

from rayhelm.errors import Fix, FleetError
from rayhelm.facts import load_catalog
from rayhelm.facts.huggingface import read_config, read_keys
from rayhelm.fleet.load import load_fleet
from rayhelm.planner.planner import plan_fleet
from shared.command import run
from shared.fits import fit

GPU = load_catalog().gpu("H100-SXM-80GB")
RECORD = {
    "id": "acme/odd",
    "architecture": "OddForCausalLM",
    "layers": 40,
    "hidden": 4096,
    "intermediate": 14336,
    "vocab": 128256,
    "max_context": 32768,
    "attention": {"heads": 32, "kv_heads": 8, "head_dim": 128},
    "stated": {"weights": 30e9, "kv_per_token": 160 * 1024},
    "built": {
        "engine": "0.29.0",
        "context": 32768,
        "ranks": [
            {"tensor_parallel_size": 1, "weights": 30e9, "kv_per_token": 160 * 1024},
            {"tensor_parallel_size": 2, "weights": 16e9, "kv_per_token": 80 * 1024},
        ],
    },
    "source": "rayhelm catalog add",
}


def write(folder: Path, **changed: object) -> Path:
    path = folder / "odd.yaml"
    path.write_text(yaml.safe_dump(RECORD | changed))
    return path


@pytest.mark.parametrize(("tp", "gigabytes"), [(1, 30), (2, 16)])
def test_fit_uses_the_weights_that_were_built_for_a_size(tmp_path: Path, tp: int, gigabytes: float) -> None:
    found = fit(read_config(write(tmp_path)), [GPU], tp, 1, max_model_len=8192)
    assert found.weights_gib_per_gpu == pytest.approx(gigabytes * 1e9 / 2**30, abs=0.01)
    assert found.fits


@pytest.mark.parametrize(
    ("tp", "pp", "says"), [(4, 1, "has tensor parallel size 1, 2, and not 4"), (1, 2, "no pipeline")]
)
def test_split_that_was_not_built_is_refused(tmp_path: Path, tp: int, pp: int, says: str) -> None:
    found = fit(read_config(write(tmp_path)), [GPU], tp, pp, max_model_len=8192)
    assert not found.fits
    assert says in found.reason


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: &x [1]\nb: *x\n", "has YAML anchors"),
        ("a: [", "is not YAML"),
        ("id: 3\n", "Input should be a valid string"),
        ("[" * 100_000, "is nested too deeply"),
        ("- " * 100_000, "is nested too deeply"),
        ("#" * 300_000, "is larger than 256 KiB"),
    ],
)
def test_data_file_that_add_did_not_write_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(text)
    with pytest.raises(FleetError) as refused:
        read_config(path)
    assert says in refused.value.problems[0].message
    assert "rayhelm catalog add" in str(refused.value.problems[0].fix)


def test_negative_weights_of_a_data_file_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, stated={"weights": -1, "kv_per_token": 1})
    with pytest.raises(FleetError, match="greater than 0"):
        read_config(path)


@pytest.mark.parametrize("key", ["weights", "kv_per_token"])
@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_figure_that_is_not_finite_is_refused(tmp_path: Path, key: str, value: float) -> None:
    figures = {"weights": 30e9, "kv_per_token": 1024.0, key: value}
    ranks = [{"tensor_parallel_size": 1, **figures}]
    for changed in ({"stated": figures}, {"built": {"engine": "0.29.0", "context": 32768, "ranks": ranks}}):
        with pytest.raises(FleetError, match="finite number"):
            read_config(write(tmp_path, **changed))


@pytest.mark.parametrize("text", ["a: [", "", "- 1\n"])
def test_broken_data_file_is_not_replaced_by_another_model(tmp_path: Path, text: str) -> None:
    (tmp_path / "odd.yaml").write_text(text)
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        "fleet: one\npools: {gpu: {gpu: H100-SXM-80GB, nodes: 1}}\n"
        "models: {chat: {source: /models/odd, context: 8192, architecture: ./odd.yaml}}\n"
    )
    loaded = load_fleet(fleet)
    with pytest.raises(FleetError) as refused:
        plan_fleet(loaded)
    (problem,) = refused.value.problems
    fixes = [fix for fix in (problem.fix, *problem.alternatives) if isinstance(fix, Fix)]
    assert fixes
    assert not [fix.value for fix in fixes if fix.value]


def test_size_that_was_not_built_is_added_with_the_sizes_of_the_file(tmp_path: Path) -> None:
    found = fit(read_config(write(tmp_path)), [GPU], 4, 1, max_model_len=8192)
    assert "`rayhelm catalog add CONFIG --tp 1 --tp 2 --tp 4`" in found.reason


def test_config_that_is_missing_is_refused_with_advice_for_add(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.json", tmp_path):
        with pytest.raises(FleetError) as refused:
            read_keys(path)
        assert str(refused.value.problems[0].fix) == "# give the config.json of the model, or its folder"


def test_catalog_add_ends_with_3_and_advice_without_vllm(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rayhelm.run.local.model_record.find_spec", lambda name: None)
    answer = run(capsys, monkeypatch, "catalog", "add", str(tmp_path))
    assert answer.code == 3
    assert "vLLM is not installed" in answer.err
    assert "requirements/serve.txt" in answer.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["add"], "needs the config.json of a model"),
        (["add", ".", "--task", "sing"], "`sing` is not one of"),
        (["gpus", "config.json"], "takes no CONFIG"),
        (["models", "--tp", "2"], "takes no CONFIG"),
        (["gpus", "--task", "embed"], "takes no CONFIG"),
    ],
)
def test_wrong_usage_of_catalog_ends_with_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    answer = run(capsys, monkeypatch, "catalog", *arguments)
    assert answer.code == 2
    assert says in " ".join(answer.err.split())
