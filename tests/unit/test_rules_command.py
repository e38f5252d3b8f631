"""`rayhelm rules` writes the rule files of a fleet."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from rayhelm.observability.rules import load_alerts
from unit.command import Answer, run

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
