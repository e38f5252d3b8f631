"""Folders that `rayhelm rules` and `rayhelm dashboards` write: files of an earlier run are removed, others stay."""

import json
from pathlib import Path

import pytest

from rayhelm.cli.files import write_folder
from rayhelm.errors import FleetError
from shared.command import run

LIST = ".rayhelm-rules.json"
COMMAND = "rayhelm rules FLEET -o FOLDER"


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_file_that_is_no_longer_written_is_removed(tmp_path: Path) -> None:
    write_folder(tmp_path, {"a.yaml": "a", "edge/b.yaml": "b"}, LIST, COMMAND)
    done = write_folder(tmp_path, {"a.yaml": "a2"}, LIST, COMMAND)
    assert done.removed == (tmp_path / "edge/b.yaml",)
    assert names(tmp_path) == {"a.yaml", LIST}
    assert (tmp_path / "a.yaml").read_text() == "a2"


def test_file_of_another_program_is_kept(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("own")
    write_folder(tmp_path, {"a.yaml": "a"}, LIST, COMMAND)
    write_folder(tmp_path, {}, LIST, COMMAND)
    assert names(tmp_path) == {"own.yaml", LIST}


def test_edited_file_is_kept_and_reported_in_each_run(tmp_path: Path) -> None:
    write_folder(tmp_path, {"a.yaml": "a"}, LIST, COMMAND)
    (tmp_path / "a.yaml").write_text("edited")
    for _ in range(2):
        done = write_folder(tmp_path, {}, LIST, COMMAND)
        assert (done.removed, done.kept) == ((), (tmp_path / "a.yaml",))
    assert (tmp_path / "a.yaml").read_text() == "edited"


def test_link_to_a_file_outside_the_folder_is_kept(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside.yaml"
    write_folder(folder, {"a.yaml": "a"}, LIST, COMMAND)
    (folder / "a.yaml").rename(outside)
    (folder / "a.yaml").symlink_to(outside)
    assert write_folder(folder, {}, LIST, COMMAND).kept == (folder / "a.yaml",)
    assert outside.read_text() == "a"


def test_folder_with_a_link_to_write_through_is_refused(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside.yaml"
    folder.mkdir()
    outside.write_text("own")
    (folder / "a.yaml").symlink_to(outside)
    with pytest.raises(FleetError, match="is a link, and nothing is written through links"):
        write_folder(folder, {"a.yaml": "a"}, LIST, COMMAND)
    assert outside.read_text() == "own"


def test_list_with_a_path_outside_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / LIST).write_text(json.dumps({"files": {"../a.yaml": "0"}}))
    with pytest.raises(FleetError, match="is not a path below its folder"):
        write_folder(tmp_path, {}, LIST, COMMAND)


def test_dashboards_command_removes_a_dashboard_of_an_earlier_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path, {"old.json": "{}", "edited.json": "{}"}, ".rayhelm-dashboards", "rayhelm dashboards -o X")
    (tmp_path / "edited.json").write_text('{"title": "mine"}')
    answer = run(capsys, monkeypatch, "dashboards", "-o", str(tmp_path))
    assert answer.code == 0
    assert f"removed  {tmp_path / 'old.json'}" in answer.out
    assert "edited.json: is no longer written; kept" in answer.err
    assert not (tmp_path / "old.json").exists()
