"""`rayhelm dashboards` lists and writes the dashboards as the chart renders them."""

import json
from pathlib import Path
from typing import Any

import pytest

from charts import kit
from rayhelm.observe.dashboards import load_dashboards
from shared.command import Answer, run

NAMES = sorted(load_dashboards())
URL = "https://git.example.com/runbooks"


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    def call(*arguments: str) -> Answer:
        return run(capsys, monkeypatch, "dashboards", *arguments)

    return call


def test_dashboards_are_listed_without_an_output_folder(command: Any) -> None:
    answer = command()
    assert answer.code == 0
    assert [line.split()[0] for line in answer.out.splitlines()] == ["name", *NAMES]


def test_list_writes_no_file(command: Any, tmp_path: Path) -> None:
    assert command("--list", "-o", str(tmp_path / "out")).code == 0
    assert not (tmp_path / "out").exists()


def test_dashboards_are_listed_as_json(command: Any) -> None:
    records = json.loads(command("--format", "json").out)["dashboards"]
    panels = {name: len(dashboard.panels) for name, dashboard in load_dashboards().items()}
    assert {record["name"]: record["panels"] for record in records} == panels
    assert all(record["uid"] == f"rayhelm-{record['name']}" for record in records)


@pytest.mark.parametrize("url", ["", URL])
def test_files_are_what_the_chart_renders(command: Any, tmp_path: Path, url: str) -> None:
    options = ["--runbook-url", url] if url else []
    answer = command("-o", str(tmp_path), *options, "--format", "json")
    files = {record["name"]: record["file"] for record in json.loads(answer.out)["dashboards"]}
    assert sorted(files) == NAMES
    values = {"dashboards": {"kind": "ConfigMap", "runbookUrl": url}}
    rendered = kit.rendered(values, chart="platform", base="platform/minimal", release="platform", namespace="x")
    data = {key: text for item in rendered if item["kind"] == "ConfigMap" for key, text in item["data"].items()}
    for name, file in files.items():
        assert json.loads(Path(file).read_text()) == json.loads(data[f"rayhelm-{name}.json"])


def test_paths_of_the_files_are_printed(command: Any, tmp_path: Path) -> None:
    printed = command("-o", str(tmp_path)).out.split()
    assert printed == [str(tmp_path / f"{name}.json") for name in NAMES]


def test_runbook_url_without_a_scheme_is_refused(command: Any) -> None:
    answer = command("--runbook-url", "runbooks")
    assert answer.code == 2
    assert "--runbook-url: runbooks is not a URL" in answer.err
    assert "fix: --runbook-url https://" in answer.err


def test_output_folder_that_is_a_file_is_refused(command: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    answer = command("-o", str(tmp_path / "file"))
    assert answer.code == 1
    assert f"{tmp_path / 'file'}/autoscaling.json: cannot be written" in answer.err
    assert "fix:" in answer.err
