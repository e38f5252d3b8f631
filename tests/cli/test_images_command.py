"""`rayhelm images`: its table, its JSON, and the parts for files."""

import json
from pathlib import Path

import pytest
import yaml

from shared.command import run

FLEET = Path(__file__).parents[2] / "values" / "single-gpu" / "fleet.yaml"
MIRROR = "registry.example/mirror"


def test_table_says_which_digests_are_not_known(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = run(capsys, monkeypatch, "images", str(FLEET))
    assert answer.code == 0
    assert "rayproject/ray-llm" in answer.out
    assert answer.out.count("no digest known") == 2
    assert "crane digest haproxy" in answer.err


def test_json_has_images_commands_and_values(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = run(capsys, monkeypatch, "images", str(FLEET), "--format", "json", "--mirror", MIRROR)
    record = json.loads(answer.out)
    (haproxy,) = [each for each in record["images"] if each["repository"] == "docker.io/library/haproxy"]
    assert haproxy["digest"] is None
    assert haproxy["keys"] == ["clusters.main.gateway.values.image"]
    assert len(record["commands"]) == len(record["images"]) == 2
    assert record["values"]["clusters"]["main"]["image"]["repository"].startswith(f"{MIRROR}/")


def test_parts_can_be_piped_into_files(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    mirrored = ("images", str(FLEET), "--mirror", MIRROR, "--only")
    commands = run(capsys, monkeypatch, *mirrored, "commands", "--tool", "crane").out
    assert all(line.startswith("crane copy ") for line in commands.splitlines())
    values = yaml.safe_load(run(capsys, monkeypatch, *mirrored, "values").out)
    assert list(values) == ["clusters"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--only", "values"), "--only values --mirror registry.example/mirror"),
        (("--mirror", MIRROR, "--only", "values", "--format", "json"), "JSON has all parts"),
        (("--mirror", ""), "fix: --mirror registry.example/mirror"),
        (("--mirror", "https://registry.example/m"), "fix: --mirror registry.example/m"),
        (("--cluster", "other"), "there is no cluster `other` (known: main)"),
    ],
)
def test_wrong_use_is_refused_with_a_fix(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], message: str
) -> None:
    answer = run(capsys, monkeypatch, "images", str(FLEET), *options)
    assert answer.code == 2
    assert message in answer.out + answer.err


def test_image_with_weights_is_copied_and_its_source_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fleet = tmp_path / "fleet.yaml"
    digest = f"sha256:{'4f' * 32}"
    fleet.write_text(
        "fleet: acme\nclusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}}}\n"
        "pools: {gpu: {gpu: H100-SXM-80GB, nodes: 2, gpusPerNode: 1}}\n"
        f"models: {{chat: {{source: 'oci://registry.example/qwen:v1@{digest}/weights', context: 8192,"
        " architecture: Qwen/Qwen3-8B}}\n"
    )
    answer = run(capsys, monkeypatch, "images", str(fleet), "--format", "json", "--mirror", MIRROR)
    record = json.loads(answer.out)
    (weights,) = [each for each in record["images"] if each["digest"] == digest]
    assert weights["keys"] == ["models.chat.source"]
    moved = f"oci://{MIRROR}/registry.example/qwen:v1@{digest}/weights"
    assert record["values"]["models"]["chat"]["source"] == moved


def test_mirrored_image_keeps_the_version_that_the_fleet_file_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = yaml.safe_load(FLEET.read_text())
    fleet["clusters"]["main"]["image"] = {"repository": "registry.example/ray-vllm", "tag": "7", "vllm": "0.29.1"}
    file = tmp_path / "fleet.yaml"
    file.write_text(yaml.safe_dump(fleet))
    answer = run(capsys, monkeypatch, "images", str(file), "--mirror", MIRROR, "--only", "values")
    image = yaml.safe_load(answer.out)["clusters"]["main"]["image"]
    assert image == {"repository": f"{MIRROR}/registry.example/ray-vllm", "tag": "7", "vllm": "0.29.1"}
