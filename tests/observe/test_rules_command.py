"""`rayhelm rules` writes the rule files of a fleet."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from rayhelm.deploy.render.files import render_fleet
from rayhelm.observe.rules import load_alerts
from rayhelm.observe.rules.files import build_recording_files
from shared.command import Answer, run

VALUES = Path(__file__).parents[2] / "values"


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    def call(*arguments: str) -> Answer:
        return run(capsys, monkeypatch, "rules", *arguments)

    return call


def test_rules_are_written_as_files_with_every_alert(command: Any, tmp_path: Path) -> None:
    found = json.loads(command(str(VALUES / "multi-node"), "-o", str(tmp_path), "--format", "json").out)
    groups = [group for path in found["written"] for group in yaml.safe_load(Path(path).read_text())["groups"]]
    alerts = {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule}
    assert alerts == set(load_alerts()) - {"Watchdog"}
    assert found["warnings"] == []


def test_fleet_that_asks_for_no_rules_is_refused_with_a_fix(command: Any, tmp_path: Path) -> None:
    answer = command(str(VALUES / "homelab"), "-o", str(tmp_path))
    assert answer.code == 1
    assert "`prometheus.rules` is None" in answer.err
    assert "runbookUrl" in answer.err


def test_rules_into_a_file_are_refused_with_a_fix(command: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    answer = command(str(VALUES / "multi-node"), "-o", str(tmp_path / "file"))
    assert answer.code == 1
    assert "cannot be written: File exists" in answer.err
    assert "rayhelm rules FLEET -o FOLDER" in answer.err


def test_local_prometheus_gets_the_recording_rules_without_alerts() -> None:
    files = build_recording_files(render_fleet(VALUES / "multi-node/fleet.yaml"))
    assert list(files) == ["rayhelm-plan.yaml", "rayhelm-service.yaml", "rayhelm-objectives.yaml", "rayhelm-cost.yaml"]
    rules = [rule for text in files.values() for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
    assert all("record" in rule for rule in rules)


def test_local_prometheus_of_a_fleet_without_rules_gets_none() -> None:
    assert build_recording_files(render_fleet(VALUES / "homelab/fleet.yaml")) == {}
